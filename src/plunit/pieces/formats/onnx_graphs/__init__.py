"""ONNX models as networks: a graph enters, the layers of a `Network` leave, and a graph that has no pieces is refused.

Open `follower.py` first: it follows the graph node by node. `operators.py` is the table of what each operator does to
the functions of units (`waves.py`) and to whole tensors, and `lowering.py` makes these of pools and of operators of
scikit-learn. `plunit.pieces.graphs` makes layers of the tensors, and `comparing.py` compares each step with the
reference of onnx.
"""
