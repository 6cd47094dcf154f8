"""English patterns of obligations: "must", "is forbidden", "stays below". Other patterns exclude similar sentences.

The comment beside a pattern is a text that it matches.
"""

from holdfast.summary.rules.phrases import any_of, phrase, triggered

MUST = phrase(  # "the hotel must have a lift"
    r"\b(?:must(?:n't)?|you (?:don't|do not) have (?:my )?permission|(?:they|it|you|these|those)(?:'re"
    r"|'s) not to|(?:may|shall) (?:not|only|never)|(?:is|are) (?:not to|strictly|absolutely not|never to)"
    r"|(?:you|nobody|no one) (?:should|shall|may|is to|are to|can) (?:always|never|only)|should (?:always"
    r"|never)|cannot ever)\b"
)
MUST_AS_GUESS = phrase(
    r"(?:must|shall) (?:be\.?$|(?:still |really )?be (?:because|something|so|that|due|a |an |the |some|why"
    r"|it|nice|hard|tough|great|fun|missing|quite|very|really|amazing|exciting|awesome|proud|tired"
    r"|difficult|wonderful|lovely|interesting|rewarding|feeling|nervous|happy)|have (?:[a-z]+ed|been|had"
    r"|got|to|felt|taken|made|gone|seen|done|come|lost|left|a lot|meant|cost)|'ve|love|feel|enjoy|miss"
    r"|really|mean|add|say|admit|feel|i|we|it|the|he|she|they|look|seem|know)\b"
)
"""A "must" that is a guess or a remark: "it must be nice"."""
MUST_WITHOUT_RULE = phrase(
    r"\b(?:i|there|one|they|he|she|this|that|which|who|it(?! (?:must|has to) (?:run|work|support|stay|remain|comply"
    r"|scale))) (?:must(?:n't)?|may|should|has to)\b"
    r"|\bmust be (?:in|at|on|by) "
    r"|\b(?:my|his|her) [a-z']+(?: [a-z]+)? must (?:be|have|think|never)\b|\bmust (?:and|or)\b|\b(?:i|one) (?:must"
    r"|should)\b"
    r"|\bmust(?:n't)? (?:i|we|it|the|one|you)\b|if you must|\byou must (?:be|love|have|feel|really|miss"
    r"|know|enjoy|think)|must$|\b(?:as|than|like|which|who) (?:i|we|it|they|he|she)? ?must"
)
"""A "must" that demands nothing in general: "I must", "if you must"."""
FORBIDDEN_OR_REQUIRED = phrase(  # "shoes are forbidden"
    r"\b(?:off.limits|forbidden|prohibited|taboo|(?:not|never|n't) (?:allowed|permitted|acceptable"
    r"|an option|negotiable)|non-negotiable|out of the question|(?:is|are|'s|'re) (?:off the (?:menu"
    r"|table)|unwelcome|unacceptable|verboten|a hard no|not up for (?:debate|discussion)|not on the table|banned"
    r"|out of bounds|not welcome|ruled out)|(?:takes?|has|have) (?:priority|precedence)"
    r"|(?:matters?|counts?) more than|(?:any day|any time) over|over [^\x1a]{1,40} any day"
    r"|gives? me (?:migraines?|headaches?|hives|heartburn|the runs|a rash)|(?:doesn't|don't|does not"
    r"|do not) agree with me|upsets? my stomach|(?:(?:gets?|makes? me) (?:car|sea)?sick on|makes? me (?:sick"
    r"|nauseous))|a (?:no-go|deal-?breaker|must)|mandatory|read-only|not to exceed|must not exceed)\b"
)
HAS_TO = phrase(  # "every room has to be quiet"
    r"^[^\x1a]{0,60}\b(?!i |we |you |they )[a-z]+ (?:has|have) to (?!be\b|go\b|work\b|leave\b|change\b"
    r"|wait\b|come\b|do\b|say\b|admit\b|get\b|i\b|stay late|[a-z]+ (?:by|until) )[a-z]+|\b(?:every|each"
    r"|all|any|everything)\b.{0,80}\b(?:has|have|needs?) to\b|\b(?:has|have|needs) to (?:be (?!done|made"
    r"|built|sent|paid|written|[a-z]+ed\b|there|able|quick|ready|back|here|somewhere|a |some)|stay|remain"
    r"|go through|pass through)"
)
HEALTH = phrase(  # "allergic to nuts"
    r"\b(?:allerg(?:ic to|y|ies)|intoleran(?:t|ce) ?(?:to|of)?|has (?:celiac|coeliac)"
    r"|is (?:a )?(?:vegetarian|vegan)|(?:uses|in) a wheelchair)\b"
)
CONVENTION = phrase(  # "every function gets a docstring"
    r"^(?:every|each|all) (?!of |the |his |her |my [a-z]+ have)[a-z-]+(?: (?!i |we )[a-z-]+){0,3} (?:gets?|has|have"
    r"|starts?|ends?|goes|go|stays?|comes?"
    r"|needs?|uses?|begins?|belongs?|carry|carries|includes?) (?!wrong|broken|lost|failed|crashed)"
    r"|^(?!my|our|his|her|the (?:kids|dog|family))[a-z\x20-]{3,40} (?:stays?|remains?) (?:in|as|un[a-z]+"
    r"|below|under|within|the same|out of|off)\b"
    r"|\bshould(?:n't| not) (?:ever )?(?:be (?!more|a |hard|long|too|difficult|an |that|so|any|much)"
    r"|turn up|appear|contain|include|exceed|have|use|show|mention|go|cost)\b"
    r"|^[a-z\x20-]{3,40} (?:throughout|everywhere|across the board|without exception|for good)\b"
)
FAMILY_PREFERENCE = phrase(  # "my wife doesn't eat meat"
    r"\b(?:my|our|the) (?:wife|husband|partner|son|daughter|kids?|children|mother|father|mum|mom|dad|boss"
    r"|girlfriend|boyfriend|parents|team|little one) (?:really |also |usually )?(?:doesn't like"
    r"|does not like|don't like|hates?|prefers?|can't (?:eat|stand)|cannot (?:eat|stand)|doesn't eat"
    r"|don't eat) (?!it\b|that\b|this\b|them\b)"
)
LASTING_LIMIT = phrase(  # "90 euros is the limit"
    r"\b(?:(?:is|are) (?:the |my |our |an? |absolute |hard ){0,3}(?:max|maximum|limit|cap|ceiling|upper limit|minimum"
    r"|most (?:i|we)"
    r" (?:can|want|will))\b|hard (?:limit|cap)\b|(?:no|not) (?:more|longer|later|earlier) than\b.{1,60}\b(?:ever|each"
    r"|every|any"
    r"|per)\b|(?:anything|everything|nothing) (?:over|above|below|under|longer than|beyond|past"
    r"|more than) [^\x1a]{1,40} (?:is"
    r"|are|gets?|needs?|won't|will|has to|doesn't) )"
)
BELONGS_ELSEWHERE = phrase(
    r"\b(?:stays?|remains?|goes|go|belongs?|is kept|are kept|comes?) (?:strictly |well )?(?:out of (?!stock|control"
    r"|town|date)"
    r"|off (?:the|my|our|any)|between us|below|under (?!water|the weather)|within|(?:out )?(?:signed|formatted"
    r"|written) )"
    r"|\b(?:doesn't|don't|does not|do not) (?:belong|go) (?:in|on|into|near) |\b(?:has|have) no (?:place"
    r"|business) (?:in|on)\b"
)
"""A thing is kept out of or within something: "secrets stay out of the logs", "phones have no place in class"."""
ACCESS_OR_UPPER_LIMIT = phrase(
    r"\b(?:nobody|no one|no-one)(?: (?:but|except|outside|other than) [^\x1a]{2,30})? (?:gets? to|touches|sees|may"
    r"|is to|enters|leaves|edits|posts|pushes|deploys) "
    r"|\b(?:can't|cannot|may not|shouldn't) (?:ever )?(?:go|be|cost|take|last|run) (?:past|over|above|beyond"
    r"|more than|longer than) "
)
"""A limit on persons or amounts: "nobody but me deploys to production", "the trip can't cost more than 900"."""
_PRODUCED_THINGS = """answers / replies / responses / explanations / emails / mails / messages / summaries / comments
suggestions
    reviews / recipes / drafts / updates / sentences / paragraphs / examples / descriptions / instructions
    letters / notes
    plans / docstrings / functions / dates / amounts / prices / times / commits / tests / variables / quotes / sources
    figures / units / measurements / distances / temperatures / docs / headings / titles / links / questions
    translations
    reports / files / branches / invoices / numbers / percentages / workouts / exercises / routes
    directions / imports
    migrations / names / classes / constants / endpoints / secrets / passwords / receipts / meals / lists
    tables / charts
    captions / slides / chapters / citations / clients / customers / guests / patients / students"""
OUTPUT_CONVENTION = phrase(
    rf"(?:all |my |our |your |any )?(?:[a-z-]+ )?{any_of(_PRODUCED_THINGS)}"
    r"(?: (?:in|below|above|from|to|of|for|with|over|under) [a-z]+(?: [a-z]+)?)?"
    r" (?:always |never |only )?(?:are (?!n't|not working|missing|broken|due|late|all|still|now"
    r"|so|too|very"
    r"|here|there|gone|failing|getting|in the|from|quite|really)(?:[a-z]+ed|written|to|in|kept|sent|spelt|set|put"
    r"|given|always"
    r"|never|only|without)|go|come|get|start|end|begin|live|use|need|carry|include|have to|should|stay|belong|follow)\b"
    r"(?! (?:wrong|missing|lost|back|through|up|off|down|longer|worse))"
)
"""A part of an answer or a project, and a verb that says how it is to be: "recipes come with grams"."""
OBLIGATIONS = (
    triggered("nobody one past over above beyond more longer", ACCESS_OR_UPPER_LIMIT),
    triggered(_PRODUCED_THINGS.replace("/", " "), OUTPUT_CONVENTION),
    triggered(
        "max maximum limit cap ceiling minimum most hard than over above below under longer beyond past", LASTING_LIMIT
    ),
    triggered("stays stay remains remain goes go belongs belong kept comes come place business", BELONGS_ELSEWHERE),
    triggered("must mustn't may shall not strictly never always only ever permission", MUST),
    triggered(
        "off forbidden prohibited taboo not never non negotiable question a mandatory read isn't aren't "
        "allowed banned bounds unwelcome unacceptable verboten hard table discussion debate out "
        "priority precedence more any migraine migraines headache headaches hives "
        "heartburn agree stomach sick nauseous runs",
        FORBIDDEN_OR_REQUIRED,
    ),
    triggered("allergic allergy allergies intolerant intolerance celiac coeliac vegetarian vegan wheelchair", HEALTH),
    triggered("has have needs need", HAS_TO),
    triggered(
        "every each all stay stays remain remains shouldn't should throughout everywhere board exception good",
        CONVENTION,
    ),
    triggered("doesn't like don't hate hates prefer prefers can't cannot", FAMILY_PREFERENCE),
)
ANCHORED_PATTERNS = (HAS_TO, CONVENTION)
"""Patterns with `^`. They are searched in a copy of the segment, since `^` matches only where a string begins."""
MATCHED_AT_START = (OUTPUT_CONVENTION,)
"""Patterns that must match at the start of a segment."""
PAST_TENSE = phrase(  # "back in 2019"
    r"\b(?:was|were|wasn't|weren't|had|did|didn't|used to|when i was|back (?:in|then)|would have|if (?:i|we) (?:had"
    r"|were))\b"
)
CURRENT_TASK = phrase(
    r"(?:and |but )?(?:the|my|this) (?:[a-z]+ )?(?:essay|letter|card|cake|poem|speech|article|paragraph|ad|caption"
    r"|invitation|e?mail|abstract|toast|kitchen|kids) (?:must|should|has to|needs to|may)\b"
)
"""A demand on the text that is being written now: "the letter must mention ..."."""
IT_HAS_TO_RUN = phrase(r"it has to (?:run|work|support|stay|remain|comply|scale)\b")  # "it has to run offline"
CONFIRMATION_QUESTION = phrase(
    r"(?:is|was|isn't|does|don't|aren't) (?:that|it|this|they) ?(?:right|true|correct|so|a myth|normal|ok|okay"
    r"|really)?|(?:correct|true|right)\?"
)
"""A question whether the statement before it is true, such as "is that right?", after a comma."""
