"""A customer whose parcel did not arrive."""

from conversations.filler import log
from conversations.script import Conversation, assistant, failed, system, tool, user

CONVERSATION = Conversation(
    name="customer support",
    language="en",
    messages=[
        system(
            "You are the support agent of Brightlamp. Refunds above 150 EUR must be approved by a supervisor. "
            "Do not promise delivery dates. Always address customers by their last name."
        ),
        user("Hello, my order BL-2026-009314 has not arrived. I paid 219.90 EUR three weeks ago."),
        assistant("I am sorry to hear that. May I have your name and the e-mail address of the order?"),
        user("Ingrid Halvorsen, ingrid.halvorsen@example.org"),
        assistant(
            "",
            tool("find_order", {"order": "BL-2026-009314"}, {"status": "shipped", "carrier": "NordPost"}),
            tool("read_history", {"order": "BL-2026-009314"}, log(60, 3)),
        ),
        assistant(
            "Thank you, Ms Halvorsen. Let me ask the carrier.",
            failed(
                "track_parcel", {"tracking": "NP884120077SE"}, "ConnectTimeout: api.nordpost.example did not answer"
            ),
        ),
        assistant(
            "",
            tool("track_parcel", {"tracking": "NP884120077SE"}, "Last scan: Malmo hub, 2026-02-09, status: exception"),
        ),
        assistant(
            "The parcel NP884120077SE was last scanned in Malmo on 2026-02-09 "
            "and is marked as an exception, so it is most "
            "likely lost."
        ),
        user("That is annoying. Can I get my money back? I don't want a replacement."),
        assistant(
            "I can request a refund of 219.90 EUR. It needs the approval of a supervisor because it is above 150 EUR."
        ),
        user("Fine. By the way, the card I paid with has expired. Please refund to my bank account instead."),
        assistant("Of course. Please send the IBAN through the secure form only, never in this chat."),
        user("Done, I filled in the form. The reference it gave me is SF-55120."),
        assistant(
            "",
            tool("read_form", {"reference": "SF-55120"}, {"valid": True, "holder": "Ingrid Halvorsen"}),
            tool("read_audit", {"reference": "SF-55120"}, log(60, 8)),
        ),
        assistant("The form SF-55120 is complete and the account holder matches."),
        assistant(
            "",
            tool(
                "create_refund",
                {"order": "BL-2026-009314", "amount": 219.9},
                {"refund": "RF-71833", "state": "awaiting"},
            ),
        ),
        assistant("I created refund RF-71833 and asked supervisor Tomas Berg for approval."),
        user("How long will it take?"),
        assistant("I cannot promise a date. After the approval the bank usually needs 3 to 5 working days."),
        user("Okay. My phone number for questions is +46 70 123 45 67, but only call after 16:00."),
        assistant("Noted: +46 70 123 45 67, after 16:00 only."),
        user("And one more thing: the newsletter. Please unsubscribe me."),
        assistant("", tool("unsubscribe", {"email": "ingrid.halvorsen@example.org"}, {"ok": True})),
        assistant("You are unsubscribed. Still pending: the approval of refund RF-71833 by Tomas Berg."),
    ],
    essentials=[
        "BL-2026-009314",
        "219.90 EUR",
        "ingrid.halvorsen@example.org",
        "NP884120077SE",
        "2026-02-09",
        "SF-55120",
        "RF-71833",
        "Tomas Berg",
        "+46 70 123 45 67",
        "only call after 16:00",
    ],
)
