r"""English patterns of preferences without a subject: "not a fan of ...", "the shorter the better".

The comment beside a pattern is a text that it matches. `\x1a` stands for a character of a quote: see `phrases`.
"""

from holdfast.summary.rules.phrases import triggered
from holdfast.summary.rules.preferences import ATTITUDE_WORDS, DEGREE

SUBJECTLESS = (
    triggered(  # "garlic and I don't get along"
        "along mix together agree get",
        r"(?!you|he|she|they|it|the|this|that|my)\b[a-z]+(?: [a-z]+)? and (?:i|me)(?:,)? (?:don't|do not|never"
        r"|just don't) (?:get along|get on|mix|go together|agree)\b",
    ),
    triggered(  # "not a fan of puns"
        ATTITUDE_WORDS,
        r"(?:(?:definitely|really|just|still|never|not|always been|never been|very|much|way|more|so"
        rf"|quite) ){{0,3}}(?:an? )?"
        rf"(?:(?:{DEGREE}) (?:fan of|believer in|lover of|stickler for|sucker for|on)|(?:fan of|keen on|fond of"
        r"|partial to"
        r"|sucker for|stickler for|one for|big on|into|wary of)|more of an?) (?!it|this|that|the|them|him|her"
        r"|your)[a-z0-9]",
    ),
    triggered(  # "can't stand jazz"
        "stand bear stomach prefer hate dislike loathe detest never love",
        r"(?:(?:(?:just |really |absolutely |simply )?(?:can't|cannot) (?:stand|bear|stomach|abide)|(?:really "
        r"|generally |always )?"
        r"(?:prefer|dislike|loathe|detest)|(?:really |absolutely )?hate|love|never (?:really |much )?(?:liked|warmed to"
        r"|cared for|been (?:keen|big|one|a fan|fond)|saw the point|trusted|got on with))"
        r" (?!and |it\b|this|that|the |them|him|her|you|to (?:say|ask|admit|break|bother|be|see|hear)|how|what"
        r"|hearing))[a-z0-9]",
    ),
    triggered(  # "happy to pay for quiet"
        "happy glad willing",
        r"(?:(?:always |more than |perfectly )?(?:happy|glad|willing) to (?:trade|pay|sacrifice|wait|walk|spend"
        r"|give up))\b",
    ),
    triggered(  # "not a word about politics"
        "word mention talk reference references nothing zero",
        r"(?:not a (?:single )?word|not a peep|no mention|no talk|no references?|nothing|no discussion) (?:of|about"
        r"|to|on) (?!the (?:new|last)|it\b|this|that)[a-z]",
    ),
    triggered(  # "under 20 minutes"
        "under below most less within up more",
        r"(?:(?:strictly |always |anything |everything )?(?:under|below|at most|less than|within|up to|not over"
        r"|never over|never more than|not above) "
        r"(?:\d|[a-z]+ (?:words|minutes|hours|euros|dollars|pounds|lines|pages|sentences|steps|ingredients"
        r"|items))[^\x1a]{0,40})",
    ),
    triggered(  # "trains over planes any day"
        "over",
        r"(?!i |we |he |she |it |they |the |this |that )[^\x1a]{3,60} over [^\x1a]{3,40} (?:any ?day|any ?time"
        r"|every time"
        r"|always|all day|without question|every day of the week)\b",
    ),
    triggered(  # "quality before speed"
        "before over above first",
        r"(?!i |we |the |my |it |not |just |day |game |never |year )[a-z]+(?: [a-z]+)? (?:before|over|above) (?!the"
        r"|my|me|it|that|this|noon|dinner|lunch|then|\d|[a-z]+ing)[a-z]+$",
    ),
    triggered(  # "give me a window seat and I'm happy"
        "give",
        r"give me [^\x1a]{3,60} and (?:i'm|i am|we're) (?:happy|happier|good|fine|content|sorted)\b"
        r"|give me [^\x1a]{3,60}(?: over [^\x1a]{3,40})? (?:any ?day|any ?time|every time)\b",
    ),
    triggered(  # "the shorter the better"
        "better the",
        r"the [a-z]*(?:er|ewer|ess|ore)(?: [a-z]+){0,4},? the (?:better|more|less|happier|worse)\b|better (?!yet|late"
        r"|safe|still|now|not)[a-z]+(?: [a-z]+){0,3} than\b",
    ),
    triggered(  # "morning person here"
        "school beginner guy gal girl person man woman lover eater household here",
        r"(?!the |this |that )(?:[a-z'-]+ ){1,4}(?:(?:kind|sort|type) of )?(?:guy|gal|girl|person|man|woman|lover"
        r"|eater|household|school|vegan|vegetarian|purist|minimalist|beginner|novice)"
        r" here\b",
    ),
    triggered(  # "nothing beats fresh bread"
        "nothing life can't life's beat short wrong better",
        r"(?:nothing (?:beats|compares to|tops|comes close to) [a-z]|life(?:'s| is) too short (?:for|to) "
        r"|(?:you )?can't (?:beat|go wrong with) (?!it|that|this))",
    ),
    triggered(  # "two pages max"
        "tops max maximum most less fewer more",
        r"(?:an? |max |at most |up to |under |about )?(?:\d|one|two|three|four|five|six|ten|twelve|fifteen|twenty"
        r"|thirty|forty|fifty|half an)[^\x1a]{0,50}"
        r" (?:tops|max|maximum|at (?:the )?(?:very )?most|or less|or fewer|and no more|and not a [a-z]+ more)$",
    ),
    triggered(  # "organic or nothing"
        "way or nothing",
        r"(?!i |we |he |she |it |the )[a-z\x20-]{3,40} (?:all the way|or nothing)$",
    ),
)
