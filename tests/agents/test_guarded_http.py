"""Where the live model of samplings may be, and that nobody else can stand in for it."""

import datetime
import http.server
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from sessions_app.agents.live_model.client import LiveModelClient
from sessions_app.agents.live_model.endpoint import Endpoint, ModelUnavailable, Target
from sessions_app.agents.live_model.guarded_http import checked
from tests.fake_provider import KEY, PROMPT, fake_provider, make_endpoint, says

# --- where it may be ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        *("", "models.example.org/v1", "ftp://models.example.org", "https://", "file:///etc/passwd"),
        *("https://me:pw@models.example.org/v1", "https://models.example.org:99999/v1"),
        *("https://models.example.org/v1#x", "https://models.example.org/a b", "https://models.example.org\r\nX: y"),
    ],
)
def test_a_bad_address_is_refused(url):
    with pytest.raises(ModelUnavailable, match="Its address must"):
        make_endpoint(url)


@pytest.mark.parametrize(
    ("url", "port", "path"),
    [
        ("https://models.example.org/v1", 443, "/v1/chat/completions"),
        ("https://models.example.org:8443/v1/", 8443, "/v1/chat/completions"),
        ("https://models.example.org/v1?api-version=2", 443, "/v1/chat/completions?api-version=2"),
        ("http://127.0.0.1", 80, "/chat/completions"),
    ],
)
def test_the_address_leads_to_chat_completions(url, port, path):
    target = make_endpoint(url).target

    assert (target.port, target.path) == (port, path)


def test_a_public_endpoint_without_tls_is_refused():
    with pytest.raises(ModelUnavailable, match="https://"):
        make_endpoint("http://models.example.org/v1", allow_private=False)


PUBLIC = ["8.8.8.8", "2606:4700::1111"]
PRIVATE = ["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "100.100.100.200", "192.0.2.1"]
PRIVATE += ["::1", "fd00:ec2::254", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:a00:1::"]
NEVER = ["169.254.169.254", "fe80::1", "224.0.0.1", "ff02::1", "0.0.0.0", "::", "240.0.0.1", "255.255.255.255"]
NEVER += ["::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "::127.0.0.1", "2002:a9fe:a9fe::"]
TLS = Target(is_tls=True, host="models.example.org", port=443, netloc="models.example.org", path="/v1")


@pytest.mark.parametrize("address", [*PUBLIC, *PRIVATE, *NEVER])
def test_addresses_are_allowed_by_what_they_really_are(address):
    outcomes = [is_allowed([address], allow_private) for allow_private in (False, True)]

    assert outcomes == [address in PUBLIC, address not in NEVER]


@pytest.mark.parametrize("address", [*PRIVATE, *NEVER])
def test_one_bad_address_spoils_a_name(address):
    assert not is_allowed([*PUBLIC, address], allow_private=False)


def is_allowed(addresses: list[str], allow_private: bool) -> bool:
    try:
        return bool(checked(addresses, TLS, allow_private=allow_private))
    except ModelUnavailable:
        return False


def test_without_tls_nothing_goes_to_a_public_address():
    plain = Target(is_tls=False, host="models.example.org", port=80, netloc="models.example.org", path="/v1")

    with pytest.raises(ModelUnavailable, match="TLS"):
        checked(PUBLIC[:1], plain, allow_private=True)
    assert checked(["10.0.0.1"], plain, allow_private=True) == ["10.0.0.1"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0x7f.1", "2130706433", "[::ffff:127.0.0.1]"])
def test_this_machine_is_no_endpoint_unless_that_is_allowed(host):
    client = LiveModelClient(Endpoint(url=f"https://{host}:9/v1", key=KEY))

    with pytest.raises(ModelUnavailable, match="REPLAY_MODEL_ALLOW_PRIVATE"):
        client.answer(PROMPT, None, model="m")


def test_the_connection_goes_to_the_address_that_was_checked():
    """The name exists nowhere else, and a second question would get another answer."""
    answers = [["127.0.0.1"], ["169.254.169.254"]]
    with fake_provider(says("No.")) as provider:
        port = provider.url.split(":")[2]
        endpoint = make_endpoint(f"http://models.invalid:{port}")
        client = LiveModelClient(endpoint, resolve=lambda host, port: answers.pop(0))

        assert client.answer(PROMPT, None, model="m")["parts"][0]["content"] == "No."
        assert provider.server.received[0].headers["Host"] == f"models.invalid:{port.split('/')[0]}"
    assert len(answers) == 1


def test_an_address_that_nobody_answers_at_is_passed_over():
    with fake_provider(says("No.")) as provider:
        client = LiveModelClient(make_endpoint(provider.url), resolve=lambda host, port: ["127.0.0.2", "127.0.0.1"])

        assert client.answer(PROMPT, None, model="m")["parts"][0]["content"] == "No."


def test_a_name_that_leads_nowhere_is_a_clear_error():
    client = LiveModelClient(Endpoint(url="https://models.invalid/v1"))

    with pytest.raises(ModelUnavailable, match=r"^Its name leads nowhere\.$"):
        client.answer(PROMPT, None, model="m")


def test_nothing_at_the_address_is_a_clear_error():
    with fake_provider(says("No.")) as provider:
        url = provider.url
    client = LiveModelClient(make_endpoint(url))

    with pytest.raises(ModelUnavailable, match=r"^Nothing answers at its address\.$"):
        client.answer(PROMPT, None, model="m")


# --- TLS ---------------------------------------------------------------------------------------


class _Speaking(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = says("No.").body
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        return None


class _TlsServer(http.server.HTTPServer):
    def handle_error(self, *arguments: Any) -> None:
        """A client that goes away is what some of these tests are about."""


def write_certificate(folder: Path, name: str) -> Path:
    """A key and its own certificate for a name, in one file."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    formats = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = folder / "certificate.pem"
    path.write_bytes(key.private_bytes(*formats) + certificate.public_bytes(serialization.Encoding.PEM))
    return path


@contextmanager
def tls_server(certificate: Path) -> Iterator[int]:
    """Its port on 127.0.0.1."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with _TlsServer(("127.0.0.1", 0), _Speaking) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def asked_over_tls(port: int, name: str) -> str:
    client = LiveModelClient(make_endpoint(f"https://{name}:{port}/v1"), resolve=lambda host, port: ["127.0.0.1"])
    try:
        return str(client.answer(PROMPT, None, model="m")["parts"][0]["content"])
    except ModelUnavailable as error:
        return error.reason


def test_the_certificate_has_to_be_for_the_name_and_from_somebody_known(tmp_path, monkeypatch):
    monkeypatch.delattr(ssl.SSLContext, "set_default_verify_paths")  # which in tests reads nothing
    certificate = write_certificate(tmp_path, "models.example.org")
    with tls_server(certificate) as port:
        unknown = asked_over_tls(port, "models.example.org")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        known = asked_over_tls(port, "models.example.org")
        misnamed = asked_over_tls(port, "other.example.org")

    assert known == "No."
    assert (unknown, misnamed) == ("Its certificate is not valid for its name.",) * 2


def test_a_server_that_speaks_no_tls_is_a_clear_error():
    with fake_provider(says("No.")) as provider:
        client = LiveModelClient(make_endpoint(provider.url.replace("http:", "https:")))

        with pytest.raises(ModelUnavailable, match="encrypted"):
            client.answer(PROMPT, None, model="m")
