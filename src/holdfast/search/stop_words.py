"""Words that say little about what is searched for."""

STOP_WORDS = frozenset(
    (  # noqa: SIM905 - a list of short strings would be hard to read
        "a about after again all also am an and any are aren as at be been before being between both but by can could"
        " couldn d did didn do does doesn doing don done down during each few for from get got had hadn has hasn have"
        " haven having he her here hers hey him his how i if in into is isn it its just let like ll lot m many may me"
        " might mine more most much must my no nor not of off oh on only or other our ours out over own re really s"
        " same shall she should shouldn so some such t than that the their theirs them then there these they this"
        " those to too up us ve very was wasn we were weren will with won would wouldn wow yeah you your yours"
    ).split()
)
QUESTION_WORDS = frozenset(
    "far how kind long name names often type what when where which who whose why".split()  # noqa: SIM905
)
