import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks

from plunit.invertible import LU, PLU, Chain, InvertibleNetwork, Reversible, SmoothPLU, Tanh, alternating

ACTIVATIONS = {
    "learned": alternating(PLU, 0.7, learnable=True),
    "fixed": alternating(PLU, 0.7),
    "flux": alternating(PLU, 0.7, learnable=True, boundary=True),
    "smooth": alternating(SmoothPLU, 0.7, learnable=True, learnable_rho=True),
}


def gradients(network, x):
    x = x.clone().requires_grad_()
    y, log_det = network.bijection(x)
    loss = (y.sin().sum(-1) + log_det * x.sum(-1).cos()).sum()
    return loss, torch.autograd.grad(loss, [x, *(p for p in network.parameters() if p.requires_grad)])


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("linear", ["lu", "orthogonal"])
def test_gradients_equal_ordinary_ones(perturb, activation, linear):
    torch.manual_seed(0)
    ordinary = perturb(InvertibleNetwork(4, 8, activation=ACTIVATIONS[activation], linear=linear), 0.1).double()
    reversible = InvertibleNetwork(4, 8, activation=ACTIVATIONS[activation], linear=linear, reversible=True).double()
    reversible.load_state_dict(ordinary.state_dict())
    for network in (ordinary, reversible):
        network.bijection.bijections[0].bias.requires_grad_(False)
    x = torch.randn(2, 20, 4, dtype=torch.float64)
    (loss, expected), (value, found) = gradients(ordinary, x), gradients(reversible, x)
    assert torch.equal(loss, value)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    parameters = [p for p in ordinary.parameters() if p.requires_grad]
    for index in (0, 1) if activation == "smooth" else ():  # one of both outputs is used
        ours = torch.autograd.grad(Reversible(*ordinary.bijection.parts())(x)[index].sum(), parameters)
        theirs = torch.autograd.grad(ordinary.bijection(x)[index].sum(), parameters, materialize_grads=True)
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def kept_bytes(network, x):
    """Bytes of distinct storages that autograd, custom functions included, keeps for backward; parameters apart."""
    own = {p.untyped_storage().data_ptr() for p in (*network.parameters(), *network.buffers())}
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        y, log_det = network.bijection(x)
        loss = y.square().sum() + log_det.sum()
    loss.backward()
    return sum(kept.values())


def test_bytes_kept_do_not_grow_with_depth():
    x = torch.randn(256, 16)
    options = {"activation": ACTIVATIONS["learned"]}
    shallow, deep = (kept_bytes(InvertibleNetwork(16, d, reversible=True, **options), x) for d in (4, 40))
    assert shallow >= x.nbytes
    assert deep / shallow <= 1.1
    ordinary = [kept_bytes(InvertibleNetwork(16, d, **options), x) for d in (4, 40)]
    assert ordinary[1] / ordinary[0] > 5


def test_functional_call_uses_the_values_given():
    torch.manual_seed(0)
    network = InvertibleNetwork(2, 2, reversible=True).double()
    other = {k: (v + 0.1).detach().requires_grad_() for k, v in network.named_parameters()}
    x = torch.randn(4, 2, dtype=torch.float64)
    y = torch.func.functional_call(network, other, (x,))
    ours = torch.autograd.grad(y.sum(), list(other.values()))
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.copy_(other[name])
    chain, parameters = Chain(*network.bijection.parts()), list(network.parameters())
    torch.testing.assert_close(ours, torch.autograd.grad(chain(x)[0].sum(), parameters, materialize_grads=True))


def test_second_derivatives_are_refused_rather_than_wrong():
    network = InvertibleNetwork(2, 2, reversible=True).double()
    x = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="first derivatives only; for second ones use reversible=False"):
        torch.autograd.grad(network(x).sum(), x, create_graph=True)


def steep(depth, **options):
    """A network whose round trip in float32 has no digit left when it is deep."""
    generator = torch.Generator().manual_seed(0)
    activation = alternating(PLU, 0.3, learnable=True)
    return InvertibleNetwork(16, depth, activation=activation, generator=generator, **options)


POINTS = torch.randn(64, 16, generator=torch.Generator().manual_seed(1))


LOST = {
    "deep": (lambda: steep(24, reversible=True), POINTS),
    "an outlier hides nothing": (lambda: steep(40, reversible=True), torch.cat([POINTS, torch.full((1, 16), 1e4)])),
    "tanh": (lambda: InvertibleNetwork(2, 2, activation=lambda n, _: Tanh(n), reversible=True), 40 * torch.ones(3, 2)),
}


@pytest.mark.parametrize("name", LOST)
def test_gradients_that_would_be_wrong_are_an_error_with_remedies(name):
    with pytest.raises(RuntimeError, match=r"off by \S+ of the size .* use float64, milder slopes or reversible=False"):
        gradients(LOST[name][0](), LOST[name][1])


@pytest.mark.parametrize(("depth", "dtype"), [(8, torch.float32), (16, torch.float32), (40, torch.float64)])
def test_gradients_without_an_error_are_right(depth, dtype):
    """The oracle is the ordinary chain in float64."""
    expected = gradients(steep(depth).double(), POINTS.double())[1]
    found = gradients(steep(depth, reversible=True).to(dtype), POINTS.to(dtype))[1]
    found, expected = (torch.cat([grad.flatten().double() for grad in grads]) for grads in (found, expected))
    assert (found - expected).norm() < 0.02 * expected.norm()


@pytest.mark.parametrize("scale", [1e-6, 1e4])
def test_the_check_goes_with_the_size_of_the_points(scale):
    network = InvertibleNetwork(4, 4, reversible=True)
    network(scale * torch.randn(20, 4)).sum().backward()
    network(torch.zeros(3, 4)).sum().backward()
    network(torch.zeros(0, 4)).sum().backward()


CHANGES = {
    "a parameter": lambda chain: torch.nn.init.ones_(chain.bijections[0].bias),
    "a buffer": lambda chain: setattr(chain.bijections[2], "rho", 0.02),
    "a part": lambda chain: chain.bijections.__setitem__(0, LU(3)),
    "a part of a part": lambda chain: chain.bijections[1].bijections.__setitem__(0, PLU(3, 0.2)),
    "the mode": lambda chain: chain.eval(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_before_backward_is_noticed(name):
    chain = Reversible(LU(3), Chain(PLU(3, 0.5), LU(3)), SmoothPLU(3, 0.3))
    y, _ = chain(torch.randn(4, 3))
    assert len(y.grad_fn.saved_tensors) == 2  # input and output
    CHANGES[name](chain)
    with pytest.raises(RuntimeError, match="changed between forward and backward"):
        y.sum().backward()
