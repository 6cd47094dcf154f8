"""An incident at night, handled by the engineer on call."""

from conversations.filler import log
from conversations.script import Conversation, Turn, assistant, failed, tool, user


def _nodes() -> list[Turn]:
    turns: list[Turn] = []
    for node in range(1, 21):
        turns += [
            assistant(
                "",
                tool(
                    "kubectl",
                    {"command": f"describe node worker-{node:02d}"},
                    f"Name: worker-{node:02d}\nCPU: {31 + node}%\nMemory: {48 + node}%\n"
                    f"Pods: {60 + node}\nKernel: 5.15.0-{90 + node}",
                ),
                tool("journalctl", {"host": f"worker-{node:02d}"}, log(6, node)),
            ),
            assistant(f"worker-{node:02d} is healthy, memory at {48 + node}%."),
        ]
    return turns


CONVERSATION = Conversation(
    name="devops incident",
    language="en",
    messages=[
        user(
            "PagerDuty woke me up: incident INC-20931, checkout is returning 502 in "
            "eu-central-1 since 02:14. Help me find the cause."
        ),
        assistant(
            "",
            tool(
                "kubectl",
                {"command": "get pods -n checkout"},
                "checkout-6d8f9c7b54-x2lqp 0/1 CrashLoopBackOff 14 restarts",
            ),
        ),
        assistant("The pod checkout-6d8f9c7b54-x2lqp is in CrashLoopBackOff with 14 restarts."),
        user("You must not scale down the payments namespace, whatever happens. And post every change to #inc-20931."),
        assistant(
            "",
            failed(
                "kubectl",
                {"command": "logs checkout-6d8f9c7b54-x2lqp -n checkout"},
                "x509: certificate has expired: not after 2026-03-19T02:13:58Z",
            ),
        ),
        assistant(
            "The logs show an expired certificate: it was valid until "
            "2026-03-19T02:13:58Z, which matches the start of the incident."
        ),
        user("Which certificate is it, and are the nodes fine otherwise?"),
        *_nodes(),
        assistant(
            "",
            tool(
                "openssl",
                {"file": "/etc/tls/checkout/mesh-ca.pem"},
                "subject=CN = mesh-ca, serial=4A:0F:9C:11, notAfter=Mar 19 02:13:58 2026",
            ),
        ),
        assistant(
            "It is the mesh CA in /etc/tls/checkout/mesh-ca.pem with serial 4A:0F:9C:11. All 20 nodes are healthy."
        ),
        user("Rotate it with cert-manager, but only in checkout for now."),
        assistant(
            "",
            failed(
                "kubectl",
                {"command": "cert-manager renew mesh-ca -n checkout"},
                "Error: issuer vault-prod: permission denied (403) on path pki/sign/mesh",
            ),
        ),
        assistant(
            "The renewal failed: vault-prod denied access to pki/sign/mesh with 403, "
            "the token of cert-manager lacks the policy mesh-sign."
        ),
        user("I added the policy mesh-sign to the role. Try again."),
        assistant(
            "",
            tool(
                "kubectl",
                {"command": "cert-manager renew mesh-ca -n checkout"},
                "certificate mesh-ca renewed, serial=7B:22:E0:5D, notAfter=Jun 17 03:05:00 2026",
            ),
        ),
        assistant("The certificate is renewed: serial 7B:22:E0:5D, valid until 17 June 2026. Pods are restarting."),
        assistant(
            "",
            tool("http_check", {"url": "https://shop.example.com/checkout/health"}, {"status": 200, "latency_ms": 88}),
        ),
        assistant(
            "https://shop.example.com/checkout/health answers 200 again; the error rate fell from 37% to 0.2% at 03:09."
        ),
        user("Phew. Write down the follow-ups for the post-mortem on Thursday."),
        assistant(
            "Follow-ups: 1. alert 21 days before any certificate expires; 2. "
            "rotate the mesh CA in the other 6 namespaces "
            "before 24 March; 3. document the policy mesh-sign in runbooks/mesh-ca.md. None of them is started yet."
        ),
    ],
    essentials=[
        "INC-20931",
        "eu-central-1",
        "02:14",
        "must not scale down the payments namespace",
        "post every change to #inc-20931",
        "checkout-6d8f9c7b54-x2lqp",
        "2026-03-19T02:13:58Z",
        "/etc/tls/checkout/mesh-ca.pem",
        "only in checkout",
        "pki/sign/mesh",
        "mesh-sign",
        "7B:22:E0:5D",
        "https://shop.example.com/checkout/health",
        "21 days",
        "24 March",
        "runbooks/mesh-ca.md",
    ],
)
