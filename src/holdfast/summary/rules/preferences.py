"""English patterns of preferences and habits. The comment beside a pattern is a text that it matches."""

from holdfast.summary.rules.phrases import any_of, phrase, triggered, word_set

_ADVERB = any_of(
    """really / much / strongly / generally / usually / always / personally / also / definitely / do / very much
    normally / typically / still / both / all / tend to / just / honestly / mostly / mainly / absolutely / simply
    quite / rather / in general / as a rule / deeply / truly / often / basically / try to / deliberately / kinda
    kind of / sort of / actively / secretly / positively / by default / would always / would generally"""
)
_I = rf"\b(?:i|we)(?:'d always|'d generally|'d usually)?(?: {_ADVERB}){{0,3}}"
_I_AM = rf"\b(?:i'm|i am|we're|we are)(?: {_ADVERB}| very| so| pretty| too| way| more| a bit| far| never| not){{0,3}}"
DEGREE = any_of("big / huge / great / no / massive / total / real / bit of a / bit of an / right / strict / lifelong")
_ATTITUDE = any_of(
    """fan of / partial to / keen on / fond of / averse to / into / big on / hot on / strict about / strict on
    careful with / careful about / particular about / picky about / fussy about / sensitive to / sensitive about
    comfortable with / used to / crazy about / mad about / nuts about / wary of / suspicious of / sceptical of
    sceptical about / skeptical of / skeptical about / scared of / afraid of / terrified of / nervous about
    drawn to / attached to / loyal to / committed to / devoted to / sucker for / stickler for / believer in
    lover of / enthusiast of / friend of / advocate of / hater of / creature of habit / one for / one to
    person for / hopeless at / hopeless with / useless at / useless with / terrible at / terrible with / bad at
    bad with / no good at / no good with / lost without / all for / all about / opposed to / in favou?r of
    against / at my best / at my worst / old-fashioned about / old-fashioned when / old school about
    more of an? / (?:the |a |an )?(?:[a-z-]+ ){0,3}(?:kind|sort|type) of (?:person|guy|girl|gal|man|woman|cook|family)
    happ(?:ier|iest) (?:with|when|if|in|on|at) / better off (?:with|when|if) / most comfortable (?:with|in|when)
    (?!good|nice|busy|bad)[a-z-]+(?: [a-z-]+)? (?:person|lover|eater|learner|sleeper)(?! (?:of|in) (?:the|this)\b)
    night owl / early bird / purist / minimalist / perfectionist / introvert / slow reader / light sleeper"""
)
ATTITUDE_WORDS = """
fan partial keen fond averse into big hot strict careful particular picky fussy sensitive comfortable
used crazy mad nuts wary suspicious sceptical skeptical scared afraid terrified nervous drawn attached loyal committed
devoted sucker stickler believer lover enthusiast friend advocate hater creature one person hopeless useless terrible
bad good lost all opposed favour favor against best worst old-fashioned old school more kind sort type happier happiest
better most eater learner sleeper night early purist minimalist perfectionist introvert slow light huge"""
_NO_CHOICE = any_of(
    """wrote / bought / brought / built / caught / chose / drew / drove / ate / fell / flew / grew / held
    led / lent / met
    paid / ran / sang / sat / sold / sent / slept / spent / spoke / stood / swam / taught / threw / woke
    wore / won / began
    broke / kept / left / cry / laugh / smile / blush / once / fancy / have to / know / think / understand
    see(?! out| red) / remember / forget / recall / get(?! on) / got / have(?! to) / had / feel
    hear / find / mean / mind / guess / suppose / hope / wonder / believe / expect / wish / imagine / realise / realize
    want / need / seem / agree / say / said / tell / told / ask / dare / figure / make / made / thought
    knew / saw / was / were / am
    are / been / went / gave / came / took / lost / did / found / felt / heard / wanted / needed / happen
    notice / even / fully
    really / quite / yet / care / manage / end / fall / [a-z]+ed / come / look / lose / miss / break / fail
    do it / i / we / it
    like / love / enjoy / trust (?:you|it|that|this|the|him|her) / thank / promise / owe / regret / stop
    let / be / give / speak for"""
)
"""Verbs after "I always" or "I never" that state no choice: "I never know", "I always forget"."""
_OBJECT = (
    r"(?!it\b|that\b|this\b|them\b|well|much|so\b|anything else|each other|enough|too\b|out of|the same"
    r"|up\b|wrong|into)"
)
"""Excludes objects that refer to the current task: "it", "this", "the same"."""
_BETTER = (
    r"(?:(?:much|far|so much|a lot|way|even|most|a bit|little) )?"
    r"(?:best|better|more|worse|faster|easier|badly|easily|well)"
)

FIRST_PERSON = (
    triggered(  # "I prefer window seats"
        "prefer favour favor dislike detest loathe despise abhor adore resent distrust hate fancy",
        rf"{_I} (?:prefer|favou?r|dislike|detest|loathe|despise|abhor|adore|resent|distrust|mistrust"
        r"|hate(?! to (?:say|ask|admit|break|bother|be)))\b",
    ),
    triggered(  # "I love short sentences"
        "like love enjoy",
        rf"{_I} (?:like|love|enjoy)\b(?= )(?! (?:the (?!taste|smell|sound|texture|sort|kind|window|aisle|outdoors)"
        r"|this|that|these|those|them|him|her|she|he|how|what|where|why|your (?!answers|repl|responses|explanations"
        r"|code"
        r"|comments|suggestions)|you\b|his|their|its|it(?! (?:when|if))|everything about|to (?:say|admit|think"
        r"|hear (?:from|that|about|you|it)"
        r"|thank|ask|add|believe|see (?:it|this|that|the)|bother|go|get|come|make|talk|be able|know (?:if|how|what|why"
        r"|whether))|crazy|hell|mad|all of|every (?:minute|bit)|being here|both|some of|my (?:new|old|own|job|boss"
        r"|friend|wife|husband|mother|dog|cat|life|work)|talking to|i\b|we\b|a (?:lot|bit)|most)\b)",
    ),
    triggered(  # "I appreciate blunt feedback"
        "appreciate", rf"{_I} appreciate (?:it when|when|people who|honest|direct|blunt|straight|short|plain|brevity)"
    ),
    triggered(  # "I want your answers in English"
        "want need expect",
        rf"{_I} (?:want|need|expect) (?:(?:your (?:answers|replies|responses|explanations|code|comments|suggestions)"
        r"|answers|explanations|everything (?!to go|about|i|you)|every (?!minute|bit)|each (?!other)|things"
        r"|at least|at most)\b|[^\x1a]{1,50} from you\b|you to (?:always|never|only|not|please always)\b)",
    ),
    triggered(
        "like", r"\b(?:i|we)(?:'d| would) like you to (?:always|never|only|not)\b"
    ),  # "I'd like you to always cite sources"
    triggered(  # "I stick to decaf"
        """lean gravitate tend go opt swear stick insist believe rely live aim default shy steer stay keep thrive
        object
        care look side err draw struggle value treasure cherish crave loves avoid value refuse trust""",
        rf"{_I} (?:lean (?:more )?(?:towards?|to)|gravitate (?:more )?(?:towards?|to)|go (?:for|by (?!bus|train|car"
        r"|plane"
        r"|bike))|opt for|swear by|stick (?:to|with)|insist on|believe in|rely on|live by|aim for|default to|avoid"
        r"|shy away from|steer clear of|stay (?:away from|clear of|off|out of)|keep (?:away from|clear of)"
        r"|thrive (?:on|in|when|with)"
        r"|object to|care (?:more |most |a lot |deeply |much )?(?:about|for)|look for|side with|err on the side of"
        r"|draw the line at|struggle with (?!the|this|that|my)|value|treasure|cherish|crave|refuse to"
        r"|tend to (?:want|use|like|avoid|go|choose|pick|write|work|need|read|take|eat|skip|forget|buy|order|cook"
        r"|stay))\b",
    ),
    triggered(  # "I can't stand jazz"
        "stand bear eat drink digest tolerate abide stomach handle have lift climb do without tell face cope",
        rf"{_I} (?:can't|cannot|can not) (?:stand|bear|eat|drink|digest|tolerate|abide|stomach|cope with|do without"
        r"|(?:handle|have|lift|climb|do|face)(?= )(?! (?:it|that|this|them|the|more|anything|much|my|a)\b)"
        r"|tell red from green)\b|\b(?:i|we) (?:could|can) (?:happily |easily )?(?:do|live) without\b",
    ),
    triggered(  # "I don't eat pork"
        "don't do",
        rf"{_I} (?:don't|do not) (?:really |usually |particularly |much |even |ever |generally |normally )?"
        r"(?:(?:like|care for|enjoy)(?! (?:the|this|that|how|your|these|those|him|her|where|what|to (?:say|admit"
        r"|ask|think))\b)|eat|drink(?! from)|fly|drive|smoke|want any|want anyone|want anything|want you to|ever want"
        r"|wish|believe in|touch|do well (?:with|on|in)|get on with|need (?:[a-z-]+ )?(?:explanations|hand-?holding"
        r"|sugar-?coating|cushioning|flattery|disclaimers|warnings|pep talks|reminders|lectures))\b",
    ),
    triggered(
        "want never wish", r"\b(?:i|we) (?:(?:do not|don't) want|never want|never wish)\b"
    ),  # "I never want reminders"
    triggered(  # "I never buy plastic bottles"
        "don't do won't will never",
        rf"{_I} (?:don't|do not|won't|will not|never|refuse to) (?!{_NO_CHOICE}\b)[a-z]+(?: (?:in|on|at|with|to|for|out"
        r"|up))?(?= )"
        r" (?!the|my|this|that|these|those|him|her|you|your|how|what|why|any of|now|here|there|today"
        rf"|tonight){_OBJECT}[a-z0-9]",
    ),
    triggered(  # "I only drink decaf coffee"
        "only mostly mainly exclusively solely rarely seldom hardly basically strictly",
        rf"{_I} (?:only|mostly|mainly|exclusively|solely|rarely|seldom|hardly ever|strictly)(?: ever)?"
        rf" (?!{_NO_CHOICE}\b|just|want to|need to)[a-z]+(?= ) {_OBJECT}",
    ),
    triggered(  # "I usually take early trains"
        "always generally usually normally typically rule",
        r"\b(?:i|we)(?:'d| would)? (?:always|generally|usually|normally|typically|as a rule"
        rf"|basically)(?: only)? (?!{_NO_CHOICE}\b)"
        rf"[a-z]+(?= ) {_OBJECT}",
    ),
    triggered(  # "I trust books more than blogs"
        "more better less rather",
        rf"\b(?:i|we)(?: {_ADVERB})? (?!{_NO_CHOICE}\b)[a-z]+ [^\x1a]{{0,60}}\b(?:more|better|less"
        r"|rather) (?:[a-z]+ )?than (?!i thought|expected"
        r"|that|this|the (?:last|other|one))[a-z]",
    ),
    triggered(  # "I've given up sugar"
        "come learned learnt grown sworn given gone cut stopped switched banned ruled",
        r"\b(?:i've|i have|we've|we have)(?: all| long| always| completely){0,2} (?:come to (?:prefer|appreciate|like"
        r"|love|hate|rely|value|enjoy)"
        r"|learn(?:ed|t) to (?:avoid|love|like|hate)|grown to|sworn off|given up (?!on (?:it|this|that))|gone off"
        r"|cut out|cut down on"
        r"|stopped (?:eating|drinking|buying|using|flying|driving|smoking|taking|watching)"
        r"|switched to [a-z]+ for good|banned|ruled out)\b",
    ),
    triggered(  # "I'd happily pay extra for quiet"
        "happily gladly could never catch find see",
        r"\b(?:i|we)(?:'d| would|'ll| will) (?:happily|gladly|always happily) (?:pay|take|trade|give up|skip|spend"
        r"|wait|walk|drive|sacrifice)\b"
        r"|\b(?:i|we) could (?:happily )?(?:eat|listen to|live on|live off|watch|read|spend"
        r"|drink) [^\x1a]{2,50}\b(?:all day|every day|forever"
        r"|for hours|any time|daily|for ever)\b|\byou(?:'ll never| will never| won't) (?:catch|find|see|get) me\b",
    ),
    triggered(  # "I get dizzy in lifts"
        "switch zone get lose glaze freeze panic shut struggle",
        r"\b(?:i|we)(?: always| just| usually| easily| quickly| tend to| really)? (?:switch off|zone out"
        r"|lose (?:the thread|interest|focus|track"
        r"|concentration|patience)|get (?:lost|bored|anxious|nervous|sick|overwhelmed|confused|stressed|distracted"
        r"|dizzy|carsick|seasick"
        r"|migraines|heartburn|hives|tired|lonely|impatient|frustrated|muddled)|freeze up|shut down|struggle"
        r"|panic) (?:when|whenever|if|from|by|in"
        r"|with|on|at|as soon as)\b(?! (?:the|this|that|it|my)\b)",
    ),
    triggered(  # "I need silence to concentrate"
        "need want",
        r"\b(?:i|we) (?:(?:always )?need (?!the|this|that|it|to|your|some help|help)[^\x1a]{2,50} (?:to (?:understand"
        r"|concentrate|focus|learn"
        r"|function|sleep|remember|follow|get going|feel|see how)|before i|when i|in writing)\b"
        r"|want [a-z]+(?: [a-z]+)? (?:kept|left) (?:out|off))",
    ),
    triggered(  # "I dread phone calls"
        """dread fear bristle cringe recoil tire roll warm set put place rate take make feel fall get vote hooked
        live run worship covet
        shudder grumble delight revel bore root weigh rank""",
        rf"{_I} (?:dread|bristle at|cringe at|recoil from|tire of|roll my eyes at|warm to|set (?:great "
        rf"|a lot of )?store by|rate [^\x1a]{{2,40}} (?:above|higher"
        r"|over)|(?:put|place|rank) (?!the|this|that|it|my|in|on|up|out)[^\x1a]{2,40} (?:before|above|over|ahead of"
        r"|first)|place (?:more |most |great )?(?:weight|value)"
        r" on|take (?:pleasure|pride|comfort) in|make a point of|feel (?:[a-z]+ )?(?:at home|safe|safer|comfortable"
        r"|better|lost|uneasy|calmer|happier|sick"
        r"|ill|rushed|stupid|patroni[sz]ed|cheated) (?:with|without|in|on|when|if|after|around)(?! (?:the|this|that"
        r"|it|my)\b)|fall back on|get (?:a kick|a lot"
        r"|great joy|more joy|real joy|most) (?:out of|from)|vote for|live for|live on|run on|shudder at|delight in"
        r"|revel in|root for|come alive|make do"
        r" with|have two left|get by (?:on|with))\b",
    ),
    triggered(  # "I'm easily distracted by noise"
        "by with on to",
        r"\b(?:i'm|i am|we're|we are)(?: (?:easily|always|never|not|quickly|often|totally|really|just"
        r"|very)){0,2} (?:bored|put off|turned off|thrown|moved"
        r"|comforted|overwhelmed|intimidated|hooked|sold|spoilt|spoiled|annoyed|irritated|distracted|frightened"
        r"|reassured|fascinated|charmed|bothered"
        r"|fussed|convinced|impressed|allergic|addicted|a convert|immune|resistant|indifferent|blind|deaf)"
        r" (?:by|with|on|to|about)\b(?! (?:the|this|that|it|your|my)\b)",
    ),
    triggered(  # "I want a source with every claim"
        "need want expect like",
        rf"\b(?:i|we)(?: {_ADVERB}| will|'ll|'d| would)? (?:need|want|expect|like) (?!to know|you to (?:write|make|do"
        rf"|check)|the)[^\x1a]{{2,90}}\b(?:with each|for each|with"
        r" every|for every|in every|in each|on every|every time|each time|whenever|by default|going forward|in future"
        r"|at all times|from now on|with any|in any"
        r"|for any)\b",
    ),
    triggered(  # "I don't want to hear about politics"
        "want",
        r"\b(?:i|we) (?:don't|do not|never) (?:ever )?want to (?:hear|read|see|know|talk|be told|think"
        r"|discuss)(?: a word| anything)?(?: about| of)?"
        r" (?!the|this|that|it\b|my|your|him|her|them|what|how|why|if)[a-z]",
    ),
    triggered(  # "I'd prefer that you asked first"
        "you",
        r"\b(?:i|we)(?:'d| would) (?:really |much |always )?(?:prefer|rather|ask|appreciate)(?: it if"
        r"| that)? you (?:didn't|not|never|don't|always|asked|kept|used"
        r"|stuck|only|to (?:not|always|never))\b|\bi ask you (?:not to|to (?:always|never))\b",
    ),
    triggered(  # "the most I'll pay per night is 90"
        "most only max longest",
        r"\bthe (?:most|only [a-z]+|maximum|longest|furthest) (?:i|we)(?:'ll|'d| will| would"
        r"| can)(?: ever)? [a-z]+\b[^\x1a]{1,50} (?:is|are)\b",
    ),
    triggered(  # "I'll never use their app"
        "always never",
        rf"\b(?:i|we)(?:'ll| will) (?:always|never) (?!{_NO_CHOICE}\b)[a-z]+ (?!it\b|that\b|this\b)[a-z]",
    ),
    triggered(  # "if it involves camping I'm out"
        "out gone",
        r"\bif (?:it|there|something|a|an|any)[^\x1a]{3,50} (?:i'm|i am|we're) (?:out|gone|not interested"
        r"|not coming)\b",
    ),
    triggered(
        "kind who", r"\b(?:is|are) the only (?:[a-z]+ ){1,3}(?:i|we)(?:'d| would|'ll| can| ever)?\b"
    ),  # "trains are the only kind I'd book"
    triggered(  # "I cycle to work whenever I can"
        "can",
        r"\b(?:i|we) [a-z]+ [^\x1a]{2,60} (?:where|wherever|whenever|when|if|as often as|as much as) (?:i|we) can\b",
    ),
    triggered(
        "any", r"\b(?:i|we)(?:'d| would) [a-z]+ [^\x1a]{2,60} any ?(?:time|day)\b"
    ),  # "I'd take rain over heat any day"
    triggered(  # "I read paper faster than screens"
        "than",
        rf"\b(?:i|we)(?: {_ADVERB})? (?!know|think|thought|was|am"
        rf"|had)[a-z]+ [^\x1a]{{1,40}} [a-z]{{2,}}er than (?!i thought|expected|that|this|the|last|usual)[a-z]",
    ),
    triggered(  # "I don't see the point of slogans"
        "point appeal",
        r"\b(?:i|we) (?:don't|do not|never) (?:really |quite )?(?:see|get|understand) the (?:point|appeal|fuss"
        r"|hype) (?:of|in|about|with)\b",
    ),
    triggered(  # "I'm a grammar nerd"
        """easily home the freak nerd snob junkie geek fanatic addict stickler pedant skeptic sceptic nut buff lark
        owl owls birds larks
        homebody worrier planner coward beginner novice purist newbie bird minimalist""",
        r"\b(?:i'm|i am|we're|we are)(?: [a-z]+)? (?:easily [a-z]+ed (?:by|when)|(?:more |most )?at home (?:in|on"
        r"|with|among)"
        r"|the (?:type|kind|sort)(?: of [a-z]+)? (?:who|that)|(?:an? )?(?:bit of an? )?(?:[a-z]+ )?(?:freak|nerd|snob"
        r"|junkie|geek|fanatic|addict|stickler"
        r"|pedant|skeptic|sceptic|nut|buff|lark|owls?|early birds?|larks|homebody|worrier|planner|coward|beginner"
        r"|novice|newbie|purist|minimalist)\b)",
    ),
    triggered(  # "my wife and I both prefer trains"
        "i",
        r"\bmy (?:wife|husband|partner|girlfriend|boyfriend|family|kids|friends) and i (?:are (?:both "
        r"|all )?(?!looking|planning|going|thinking"
        r"|trying|in |at |on )|(?:prefer|like|love|hate|don't|never|always|only|both) )[a-z]+",
    ),
    triggered(  # "we shop at local markets only"
        "only", r"\b(?:i|we) (?:work|train|cook|eat|buy|shop|pay|travel|write|deal|play|live) [^\x1a]{1,60} only\b"
    ),
    triggered(  # "I have no patience for jargon"
        """patience time tolerance use appetite stomach interest spot weakness thing tooth preference dislike aversion
        phobia fear horror love passion head attention""",
        r"\b(?:i've|i have|we've|we have|i|we)(?: got| had)?(?: always had| never had)? (?:a |an |no |little |zero "
        r"|very"
        r" |limited |absolutely no |not much |such )+"
        r"(?:[a-z-]+ )?(?:(?:patience|time|tolerance|use|appetite|stomach|interest|soft spot|weakness|thing|sweet tooth"
        r"|preference|dislike|aversion|horror|love|passion|head|need) (?:for|of|to|in|about)\b"
        r"|sweet tooth|phobia|fear of|short attention)",
    ),
    triggered(ATTITUDE_WORDS, rf"{_I_AM} (?:(?:an? )?(?:{DEGREE} )?){_ATTITUDE}\b"),  # "I'm not a fan of puns"
    triggered(  # "I've always hated buffets"
        "always never",
        r"\b(?:i've|i have|we've|we have|have) (?:always|never)(?: really| much)? (?:liked|loved|preferred|hated"
        r"|disliked"
        r"|avoided|enjoyed|trusted|believed in|cared (?:for|about)|warmed to|found|favou?red|got(?:ten)? on with|had a"
        rf"|seen the (?:point|appeal)|understood the (?:point|appeal)|been (?:an? )?(?:{DEGREE} )?{_ATTITUDE})",
    ),
    triggered(  # "I'd rather walk than drive"
        "rather sooner",
        r"\b(?:i|we)(?:'d| would)(?: (?:always|generally|usually|much|far|in general|really|still)){0,2} (?:rather"
        r"|sooner)\b"
        r"(?!.{1,80}\b(?:this|tonight|today|tomorrow)\b)(?=.{1,120}\b(?:than|ever|any|anything|always|in general"
        r"|whenever"
        r"|if i can|when (?:i|we|you))\b)",
    ),
    triggered(  # "I'd pick tea over coffee"
        "over",
        rf"\b(?:i|we)(?:'d| would|'ll| will)?(?: {_ADVERB})? (?:take|choose|pick|go for"
        rf"|have) [^\x1a]{{2,60}} over (?!the (?:weekend"
        r"|next|holiday|summer|winter|last|phone|course|counter)|\d)[a-z]",
    ),
    triggered(  # "I work best in the morning"
        "best better more worse faster easier badly easily well",
        r"\b(?:i|we)(?: always| usually| generally| just| tend to| seem to)? (?:learn|work|think|understand|remember"
        r"|sleep"
        r"|concentrate|read|do|get on|get along|cope|function|perform|follow|study|focus|train|feel|absorb|retain"
        r"|process"
        rf"|take things in|write|eat|play|respond|react)(?: things| stuff| it)? {_BETTER}"
        r"(?: (?:with|when|if|in|at|from|by|without|on|to|after|before|as|once|under|alone|than|out of)\b|$"
        r"|(?=[.,;!]))",
    ),
    triggered(  # "I find bullet points easier"
        "find",
        rf"{_I} find (?!the |it |that |this |out|my |a |an |myself|any)[^\x1a]{{1,60}} (?:more|easier|harder|better"
        r"|clearer|worse|less|too|distracting|annoying|confusing|unreadable|helpful|useful|most|off-putting|tedious"
        r"|boring"
        r"|exhausting|overwhelming|stressful|ugly|hard to (?:read|follow|digest)|patroni[sz]ing|creepy|irritating)\b",
    ),
    triggered(  # "what I value most is honesty"
        "what all thing",
        r"\b(?:what|the (?:one )?thing|all) (?:i|we)(?: [a-z]+)?(?: ever)? (?:(?:value|like|love|hate|care about"
        r"|look for"
        r"|prefer|enjoy|dislike|can't stand|cannot stand|need|want|ask|go for|insist on|cherish)(?: (?:most"
        r"|above all))?"
        r"(?: (?:in|from|of|about|with|for|at|on) (?!the |this |that |it)[^\x1a]{1,50})?) (?:is|are)\b(?! (?:to|a|an"
        r"|the"
        r"|that|this|some|your|for)\b)",
    ),
    triggered(  # "we use tabs in this repo"
        "use write name format indent spell call document deploy measure",
        r"\b(?:we|i) (?:use|write|name|format|indent|spell|call|document|deploy"
        r"|measure) [^\x1a]{1,80}\b(?:here|in this (?:project|repo|repository|team|house|company)|throughout"
        r"|everywhere|and not|for everything)\b",
    ),
    triggered(  # "I write in British English"
        "write code comment document",
        r"\b(?:i|we) (?:write|code|comment|document) (?:everything |only |my [a-z]+ )?(?:in"
        r"|with) (?!the morning|a hurry|this|that|my|a |an )",
    ),
    triggered(  # "my budget is 900 euros"
        "my our",
        r"\b(?:my|our) (?:(?:own|personal|usual|general|absolute|total|overall|daily|monthly|biggest|weekly|hard|only"
        r"|one"
        r"|first|top|normal|standard) ){0,2}"
        r"(?:preference|preferred [a-z]+|favou?rite [a-z]+|favou?rites?|rule|policy|principle|limit|budget|maximum"
        r"|ceiling"
        r"|upper limit|minimum|habit|rule of thumb|default|taste|tastes|style|pet peeve|pet hate|bugbear|comfort zone"
        r"|sweet spot|weakness|cap|threshold|price range|attention span|motto|philosophy|mantra|idea of [^\x1a]{1,40}"
        r"|kind of"
        r" [^\x1a]{1,30}|priority|go-to|deal-?breaker|diet|pronouns|convention|standard)"
        r"(?: (?:for|in|on|when|with|of) [^\x1a]{1,60})? (?:is(?! this| that)|are|has always been|remains|:|runs? to"
        r"|leans?"
        r"|tends? to|goes to)",
    ),
    triggered(  # "the total budget is 900"
        "budget limit maximum ceiling", r"\bthe (?:total |overall |whole )?(?:budget|limit|maximum|ceiling) is\b"
    ),
    triggered(
        "preference", r"\b(?:my|our|a) (?:strong |clear |general )?preference for\b"
    ),  # "my clear preference for trains"
    triggered("rule", r"\b(?:the|our|my|one|house|ground) rule(?: [a-z]+){0,3} is\b"),  # "our rule is no shoes inside"
)
FIRST_WORDS = phrase(r"\b(?:i|we|my|our|im|ive|there|the|if|is|are|what|all|you|house|ground|a|one)\b")
"""The words with which a pattern of FIRST_PERSON begins."""
SPEAKER_WORDS = word_set(
    """i'll we'll in on for with you me i we my our i'm i'd we'd we're i've ive we've a the what all have
    there's there"""
)
"""A sentence with none of these words states no preference of the speaker."""
MY_RULE_IS_TO = phrase(
    r"my (?:style|taste|preference|rule|habit|policy|approach|way)\b[^\x1a]{0,60} is to [a-z]+"
)  # "my rule is to pay cash"
HABIT = phrase(r"\b(?:always|never|generally|usually|normally|typically)\b")
NO_GENERAL_OBJECT = phrase(r"(?:not to say|it|that|this|them|him|her|those|these)\b(?! (?:when|if|kind|kinds|sort))")
"""Objects of a preference that refer to the current task: "I prefer this"."""
CURRENT_CHOICE = phrase(
    r"(?:to (?:say|admit|know|think|hear|bother|ask|be (?:a|that))|the (?:idea|way|look|sound|one|first"
    r"|second|third|last|other|new|later|earlier|\d+|thought|fact|result|version|colou?r|design|logo|title|ending"
    r"|layout|name|wording|tone|font|picture|draft|[a-z]+ (?:one|version|option|title|draft))"
    r"|how|your(?! (?:answers|replies|explanations|responses))|what you"
    r"|a (?:replacement|refund|new)|to see (?:it|this|that))\b(?! (?:when|if|kind|kinds|sort))"
)
"""A choice for the current task: "I prefer the second version"."""
GENERAL_AVERSION = phrase(
    r"(?:i|we) (?:do not|don't) want (?:any|anything|anyone|you to|my|our|your|to (?:ever|see any|hear any"
    r"|read any|be (?:contacted|called|asked))|.{1,80} (?:unless|without|ever|anywhere|in any|at all)\b)"
)
"""A "don't want" that holds in general: "I don't want any ..."."""
