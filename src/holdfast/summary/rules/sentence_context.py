r"""English patterns of the words around a rule, and of sentences that are narration, reports or one-time orders.

The comment beside a pattern is a text that it matches. `\x1a` stands for a character of a quote: see `phrases`.
"""

from holdfast.summary.rules.phrases import phrase, word_set

RULE_SUFFIX = phrase(  # "that's how I work"
    r"(?:and |but )?(?:(?:that's|thats|that is)(?: (?:just|simply|always))? (?:how (?:i|we)|the way (?:i|we)|who (?:i"
    r"|we)|me$|us$|my (?:style|way|thing|rule|taste)"
    r"|our (?:style|way|thing|rule)|a rule|non-negotiable|not negotiable)|(?:i |we )?(?:always|never) (?:have|has|did"
    r"|do|does|will|was|am|been|has been|have been)$"
    r"|no exceptions?|full stop|period$|end of story|non-negotiable|without exceptions?|no matter (?:what|who|how"
    r"|which)|hard (?:limit|no|rule|stop)"
    r"|(?:company|house|school|office) (?:policy|rules?)|doctor's orders|by law|fyi$|just so you know|for the record"
    r"|as a rule|in general|on principle|(?:my|our|family|old) (?:rule|habit)"
    r"|simple as that|no ifs|not up for|it goes for|that goes for|any (?:day|time)|for good$|for life$|always$|ever$"
    r"|everywhere|throughout|all of them$|each and every|for (?:religious|medical|health|ethical|legal) reasons"
    r"|every (?:single )?time|fight me)\b"
)
"""A segment after a statement that marks it as a rule: "no sugar, that's how I like it"."""
RULE_PREFIX = phrase(  # "for the record"
    r"(?:(?:my|our|company|house|school|office|family|golden|old) (?:[a-z]+ )?(?:motto|rules?|policy|preference|limit"
    r"|budget|wish|request|mantra|principle)$|just so you know|(?:just )?for the record|fyi|for future reference"
    r"|for your information|(?:one|a) (?:small |quick )?(?:thing|note|request|rule|ask)(?: about me| you should know"
    r"| to know| for you| for the future| up front| in general)?$|you should know(?: that)?|as a (?:general )?(?:rule"
    r"|matter|principle)|in general|generally(?: speaking)?|on principle|house rule|rule (?:number )?one"
    r"|heads.up|my (?:one|only) (?:request|rule|ask)|standing (?:rule|request|order)|general (?:rule|request|note)"
    r"|for all (?:future|my|our)|in (?:all )?our (?:chats|sessions|conversations"
    r"|emails)|so you know|for context about me|about me|full disclosure|for what it's worth|call me old-fashioned"
    r"|wherever possible|whenever possible)\b"
)
"""A segment before a statement that marks it as a rule: "for the record, no sugar"."""
NARRATION = phrase(  # "it rained"
    r"^(?:it|he|she|they|this|that|these|those|there|who|which|the|you're|that's|it's)\b|\b(?:was|were|wasn't|weren't"
    r"|had|did|didn't|went|got|said|told|thought|used to|came|took|is|are [a-z]+ing"
    r"|will|going to|today|yesterday|tomorrow|now|this|(?:i|we|you|he|she|they|it) [a-z]{3,}ed)\b|\x1a"
)
"""Words of a statement about the past or the present, which is no rule even if it is marked as one."""
REPORTING_WORDS = word_set(
    """told tells taught says said say states insists claims swears reckons recommend recommends advises demand
    demands wants
    according rules regulations terms guidelines statutes bylaws"""
)
"""A sentence with none of these words does not match REPORTED_BY_OTHERS."""
REPORTED_BY_OTHERS = phrase(  # "my boss insists"
    r"\b(?:(?:he|she|they|who|[a-z]+) (?:told|tells|taught) (?:me|us|him|her|them|everyone)|(?<!i\x20)(?:says|said"
    r"|(?:rules|people|they|guidelines|everyone|experts|docs|signs) say|states|insists|claims|swears|reckons"
    r"|recommends?|advises|demands?|wants us)\b"
    r"|according to|(?:rules|regulations|terms|guidelines|statutes|bylaws) (?:of|are|at|in|from)\b)"
)
"""Words after which the rest of a sentence reports what other people demand: "my boss insists on ties"."""
ONE_TIME_ORDER = phrase(  # "write me a poem"
    r"(?:(?:ok|okay|so|hi|hey|now|and|please|then),? ){0,2}(?:(?:can|could|would) you (?:please )?)?(?:(?:make|write"
    r"|draft|book|create|design|build|translate|rewrite|prepare|bake|compose|order)"
    r" (?:me |us )?(?:a|an|the|this|my|some|two|three) (?!point|habit|rule)|(?:i|we) (?:need|want) (?:a|an|the|this"
    r"|some) [^\x1a]{2,60}\b(?:for|by|on|near|before) |for (?:the|this|our|tonight's|tomorrow's|saturday's"
    r"|sunday's) (?:[a-z]+ )?(?:invitation|card|letter|party|dinner|trip|essay|presentation|meeting|speech|cake|ad"
    r"|poster|e?mail|flyer|wedding|birthday),? )"
)
"""An order for the current task. Other demands in its sentence apply only to this task."""
CLAUSE_GAP = phrase(r"[,;]? ?(?:and|but)? ?")  # ", and "
"""The text between two clauses that are merged into one."""
WORDS_TO_USE = phrase(
    r"\b(?:signed|with|as|say|saying|words?|phrase|called|named|titled|use|using|than|from|of"
    r"|like)[\x20,:]?\x1a{2,60}(?!\x1a)"
)
"""A quote of words that the answer is to use: "signed 'Kind regards'"."""
LEADING_SCOPE = phrase(  # "in emails "
    r"(?:in|on|for|with|at|when it comes to|as far as|where|when|if|after|before|during|as a|honestly|personally"
    r"|frankly|generally)\b[^\x1a,]{1,40} "
)
"""What a preference applies to, if that is stated first: "in emails I prefer ..."."""
