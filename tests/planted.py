"""Secrets of every kind, made up anew for each place they are planted in."""

from __future__ import annotations

import base64
import json
import random
import string
from os.path import commonprefix

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits
DIGITS = string.digits


class Planted:
    """Lines of prose with one secret of every kind, different for each ``place``."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._draw = random.Random(place)
        self.values = {**self._tokens(), **self._named()}
        self.key = self._key()

    def prose(self) -> str:
        """Return a text that holds all of them, each on a line of its own."""
        lines = [self._framed(kind, value) for kind, value in self.values.items()]
        return "\n\n".join([*lines, f"The key:\n{self.key}", "The lighthouse keeps watch over the harbour."])

    def short(self) -> str:
        """Return one line with a single secret at its beginning."""
        return f"{self.values['github_token']} opens the lighthouse of the harbour"

    @property
    def needles(self) -> set[str]:
        """Pieces by which any of them would be known again; a short one is looked for as a whole."""
        return set().union(*self.by_kind().values())

    def by_kind(self) -> dict[str, set[str]]:
        """Return the pieces of each kind."""
        # What all of a kind begin with is no secret.
        other = Planted(f"not {self._place}").values
        begin = {kind: len(commonprefix([value, other[kind]])) for kind, value in self.values.items()}
        pieces = {kind: _pieces(value[begin[kind] :]) for kind, value in self.values.items()}
        pieces["private_key"] = set().union(*map(_pieces, self.key.splitlines()[1:-1]))
        return pieces

    def _pick(self, alphabet: str, count: int) -> str:
        # One of each class, so that no rule takes it for a word or a number.
        sure = [self._draw.choice(part) for part in (string.ascii_lowercase, UPPER, DIGITS)]
        kept = [char for char in sure if char in alphabet]
        return "".join(kept + [self._draw.choice(alphabet) for _ in range(count - len(kept))])

    def _tokens(self) -> dict[str, str]:
        def a(count: int) -> str:
            return self._pick(ALNUM, count)

        def h(count: int) -> str:
            return self._pick(HEX, count)

        def u(count: int) -> str:
            return self._pick(UPPER, count)

        return {
            "aws_key": "AK" + "IA" + u(16),
            "github_token": "gh" + "p_" + a(36),
            "gitlab_token": "gl" + "pat-" + a(20),
            "slack_token": "xo" + "xb-" + self._pick(DIGITS, 12) + "-" + a(24),
            "webhook_url": "https://hooks." + "slack.com/services/T" + u(8) + "/B" + u(8) + "/" + a(24),
            "stripe_key": "sk" + "_live_" + a(24),
            "anthropic_key": "sk" + "-ant-api03-" + a(80),
            "openai_key": "sk" + "-proj-" + a(60),
            "google_key": "AI" + "za" + a(35),
            "google_secret": "GOC" + "SPX-" + a(28),
            "npm_token": "np" + "m_" + a(36),
            "pypi_token": "py" + "pi-AgE" + "IcHlwaS5vcmc" + a(60),
            "huggingface_token": "h" + "f_" + a(34),
            "sendgrid_key": "S" + "G." + a(22) + "." + a(43),
            "twilio_key": "S" + "K" + h(32),
            "digitalocean_token": "do" + "p_v1_" + h(64),
            "shopify_token": "sh" + "pat_" + h(32),
            "databricks_token": "da" + "pi" + h(32),
            "groq_key": "gs" + "k_" + a(52),
            "xai_key": "xa" + "i-" + a(80),
            "replicate_token": "r" + "8_" + a(37),
            "linear_key": "lin" + "_api_" + a(40),
            "notion_token": "nt" + "n_" + a(46),
            "vault_token": "hv" + "s." + a(24),
            "age_key": "AGE-SECRET" + "-KEY-1" + u(58),
            "grafana_token": "gl" + "sa_" + a(32) + "_" + h(8),
            "docker_token": "dck" + "r_pat_" + a(27),
            "atlassian_token": "ATA" + "TT3xFfGF0" + a(60) + "=" + h(8).upper(),
            "tailscale_key": "tsk" + "ey-auth-" + a(12) + "-" + a(32),
            "square_token": "sq" + "0atp-" + a(22),
            "aws_session_token": "IQoJb3" + "JpZ2lu" + a(300),
            "jwt": self._jwt(),
            "azure_sas": a(42) + "%3D",
            "azure_key": a(86) + "==",
            "telegram_token": "1" + self._pick(DIGITS, 9) + ":AA" + a(33),
        }

    def _named(self) -> dict[str, str]:
        return {
            "aws_secret": self._pick(ALNUM, 40),
            "url_password": self._pick(ALNUM, 14),
            "authorization": self._pick(ALNUM, 32),
            "cookie": self._pick(ALNUM, 32),
            "password": self._pick(ALNUM, 12),
            "secret": self._pick(ALNUM, 32),
        }

    def _framed(self, kind: str, value: str) -> str:
        frames = {
            "azure_sas": "https://x.blob.core.windows.net/a?se=2030&sig={}",
            "azure_key": "AccountName=x;AccountKey={};EndpointSuffix=core",
            "aws_secret": "aws_secret_access_key = {}",
            "url_password": "postgres://app:{}@db.local:5432/x",
            "authorization": "Authorization: Bearer {}",
            "cookie": "Cookie: sessionid={}",
            "password": 'password = "{}"',
            "secret": 'client_secret = "{}"',
        }
        return frames.get(kind, "Use {} there.").format(value)

    def _jwt(self) -> str:
        body = {"sub": self._pick(ALNUM, 40), "roles": [self._pick(ALNUM, 60) for _ in range(12)]}
        encoded = (
            base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
            for part in ({"alg": "HS256", "kid": self._pick(ALNUM, 12)}, body)
        )
        return ".".join([*encoded, self._pick(ALNUM, 43)])

    def _key(self) -> str:
        lines = [self._pick(ALNUM, 64) for _ in range(40)]
        begin, end = (f"-----{word} RSA PRIVATE KEY-----" for word in ("BEGIN", "END"))
        return "\n".join([begin, *lines, end])


def _pieces(value: str) -> set[str]:
    return {value[at : at + 20] for at in range(0, max(1, len(value) - 19), 10)}
