"""A trip booked with a budget, an allergy and a fixed date."""

from conversations.filler import listing
from conversations.script import Conversation, Turn, assistant, failed, tool, user


def _offers() -> list[Turn]:
    turns: list[Turn] = []
    for at, (area, price) in enumerate(
        [("Alfama", 212), ("Baixa", 188), ("Chiado", 240), ("Belem", 154), ("Lapa", 171)]
    ):
        turns += [
            user(f"What about hotels in {area}?"),
            assistant(
                f"Searching {area}.",
                tool(
                    "search_hotels",
                    {"city": "Lisbon", "area": area, "nights": 4},
                    {"results": [{"name": f"Casa {area}", "price": price, "rating": 8.1 + at / 10}]},
                ),
                tool("list_photos", {"hotel": f"Casa {area}"}, listing(32, at)),
            ),
            assistant(f"Casa {area} has rooms for {price} EUR a night, but only one double bed each."),
        ]
    return turns


CONVERSATION = Conversation(
    name="travel booking",
    language="en",
    messages=[
        user(
            "Hi! I want to book a trip to Lisbon for my mother and me, from "
            "14 May to 18 May 2026, leaving from Hamburg. "
            "The total budget is 1,900 EUR."
        ),
        assistant("Happy to help. Do you have preferences for flights and the hotel?"),
        user("My mother uses a wheelchair, so the hotel must have step-free access. She is allergic to peanuts."),
        user("And never book connections with less than 90 minutes between flights."),
        assistant(
            "",
            failed(
                "search_flights", {"from": "HAM", "to": "LIS", "date": "2026-05-14"}, "HTTP 503 Service Unavailable"
            ),
        ),
        assistant(
            "The first search failed with HTTP 503, trying again.",
            tool(
                "search_flights",
                {"from": "HAM", "to": "LIS", "date": "2026-05-14"},
                [
                    {"flight": "TP563", "departs": "06:10", "price": 289},
                    {"flight": "LH2081", "departs": "09:25", "price": 342, "via": "FRA", "layover_min": 55},
                ],
            ),
        ),
        assistant("TP563 is direct, leaves at 06:10 and costs 289 EUR each. LH2081 has only 55 minutes in Frankfurt."),
        user("Let's take TP563 then."),
        assistant(
            "", tool("book_flight", {"flight": "TP563", "passengers": 2}, {"pnr": "X7QK2M", "total": "578.00 EUR"})
        ),
        assistant("Booked: TP563, confirmation code X7QK2M, 578.00 EUR for both."),
        *_offers(),
        user("Is there one with two single beds and a ramp?"),
        assistant(
            "",
            tool(
                "search_hotels",
                {"city": "Lisbon", "accessible": True, "beds": "twin"},
                {
                    "results": [
                        {"name": "Hotel Marquesa", "price": 148, "address": "Rua do Salitre 104", "accessible": True}
                    ]
                },
            ),
        ),
        assistant("Hotel Marquesa, Rua do Salitre 104, has step-free twin rooms for 148 EUR a night."),
        user("Perfect, go with Hotel Marquesa. Free cancellation only, please."),
        assistant(
            "", tool("book_hotel", {"hotel": "Hotel Marquesa", "nights": 4}, {"booking": "HM-260514-88", "total": 592})
        ),
        assistant("The room is booked: HM-260514-88, 592 EUR, free cancellation until 12 May 18:00."),
        user("Thanks. What is still open?"),
        assistant(
            "Still open: wheelchair assistance at both airports has to be "
            "requested by 10 May, and the airline needs the "
            "measurements of the wheelchair. You have 730 EUR of the budget left."
        ),
    ],
    essentials=[
        "14 May to 18 May 2026",
        "1,900 EUR",
        "step-free access",
        "allergic to peanuts",
        "never book connections with less than 90 minutes between flights",
        "TP563",
        "X7QK2M",
        "HM-260514-88",
        "Hotel Marquesa",
        "12 May",
        "10 May",
        "Free cancellation only",
    ],
)
