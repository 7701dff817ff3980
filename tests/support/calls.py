"""Calls to the playground's server as its page makes them, and what raw bytes get for an answer."""

import http.client
import json
import socket
import threading

SINE = {"kind": "paper", "name": "sine"}
SMALL = {"target": SINE, "networks": 16, "activations": ["relu", "plu"]}


def asked(server, method, path, body=None, **headers):
    """Return status, headers and content; headers with _ for - replace those of a page."""
    usual = {"Host": f"127.0.0.1:{server.server_port}", "X-Plunit-Token": server.token}
    usual |= {name.replace("_", "-"): value for name, value in headers.items()}
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=120)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in usual.items():
            if value is not None:
                connection.putheader(name, value)
        if body is not None and "Content-Length" not in usual:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        reply = connection.getresponse()
        return reply.status, dict(reply.getheaders()), reply.read()
    finally:
        connection.close()


def called(server, kind, body, **headers):
    """Return the status and the decoded reply: the object and the payload, or the error's object."""
    status, _, content = asked(server, "POST", f"/call/{kind}", json.dumps(body).encode(), **headers)
    if status != 200:
        return status, json.loads(content)
    length = int.from_bytes(content[:4], "little")
    assert (4 + length) % 4 == 0
    return json.loads(content[4 : 4 + length]), content[4 + length :]


def raw(server, content, *, timeout=5.0):
    """Send bytes and return all that comes back until the server closes, or nothing more comes."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=timeout) as connection:
        connection.sendall(content)
        found = b""
        try:
            while part := connection.recv(65536):
                found += part
        except TimeoutError:
            pass
        return found


def threads():
    """Return the names of the playground's threads."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("plunit")]
