"""English patterns of judgements ("jokes are always welcome", "crowds make me nervous") and of personal facts.

The comment beside a pattern is a text that it matches. `phrases` explains the notation.
"""

from holdfast.summary.rules.phrases import any_of, phrase, triggered

_VERY = (
    r"(?:(?:really|just|so|simply|always|never|usually|very|quite|definitely|absolutely|far|much|way|honestly) ){0,2}"
)
_IS = r"(?:(?:is|are|has always been|have always been)(?: not| never)?|isn't|aren't|'s|'re) "
ABOUT_ME = (
    triggered(  # "mornings are when I think best"
        "where when why how what",
        r"\b(?:is|are) (?:usually |always |exactly |precisely )?(?:where|when|why|how) (?:i|we|my|our) ",
    ),
    triggered(  # "small print hurts my eyes"
        "my our",
        r"\b(?:gets?|puts?|sets?|drives?|raises?|tests?|breaks?|warms?|turns?|eats?|makes?|blows?|tries|try|ruins?"
        r"|hurts?) my [a-z]+\b(?! (?:in the|for the))",
    ),
    triggered(  # "jokes are always welcome"
        "welcome appreciated encouraged optional unnecessary unwanted mandatory essential compulsory out off taboo",
        r"\b(?:is|are|isn't|aren't) (?:always |never |very |very much |totally )?(?:welcome|appreciated|encouraged"
        r"|optional|unnecessary|unwanted|mandatory|essential|compulsory|out$|off$|a no\b|a yes\b)",
    ),
    triggered(  # "mornings suit me"
        "suit suits work works do does doesn't don't click clicks agree agrees stick sticks stay sit sits sink",
        rf"\b{_VERY}(?:(?:doesn't|don't|does not|do not) {_VERY})?(?:suits? (?:me|us)|(?:works?|clicks?|sticks?) "
        r"(?:[a-z]+ ){0,2}(?:for|with) (?:me|us)|(?:do|does) (?:it|nothing|wonders|the trick|little) for (?:me|us)"
        r"|(?:do|does) my head in|agrees? with me|sits? well with me|sinks? in (?:better|faster|best))\b",
    ),
    triggered(  # "camping isn't my thing"
        "my our for me us what how where all the lost beyond important",
        rf"\b{_IS}{_VERY}(?:(?:for (?:me|us)|(?:more |not |exactly |totally )?my (?:thing|cup of tea|style|jam|go-to"
        r"|favou?rites?"
        r"|strong suit|forte|bag|scene|preference|default|preferred [a-z]+|pet peeve|pet hate|idea of (?:fun|hell"
        r"|a good [a-z]+)"
        r"|comfort zone|limit|maximum|max|ceiling|first choice|weakness|priority|kind of [a-z]+)"
        r"|right up my (?:street|alley)"
        r"|(?:beyond|lost on|wasted on) (?:me|us)|what (?:i|we) (?:want from you|need from you|like|prefer|look for"
        r"|value"
        r"|go for|live for|enjoy|swear by)|what (?:makes|helps|keeps|gets|drives|calms|motivates|works)|how (?:i"
        r"|we) (?:like"
        r"|learn|work|think|prefer|do)|what (?:i|we) (?!want|need|mean|meant|thought|said|did|got|expect|see|saw|have"
        r"|had|was|am|were)[a-z]+|where (?:i|we) draw the line|the way (?:i|we) (?:like|learn|work|prefer)"
        r"|(?:more |very |most |less |equally )?(?:important|easier|easiest|better|best|worth more|hard|harder"
        r"|difficult|plenty"
        r"|sacred|simpler|clearer|enough) (?:for|to) (?:me|us)|a must(?: for (?:me|us))?|(?:a|an absolute"
        r"|my) (?:deal-?breaker"
        r"|no-go|turn-?off|non-starter|no-no))\b)",
    ),
    triggered(  # "crowds make me nervous"
        "me my",
        rf"\b{_VERY}(?:drives? me|leaves? me (?:cold|confused|lost|stressed|flat)|puts? me (?:off|to sleep|in a)"
        r"|turns? me off"
        r"|turns? my stomach|makes? me (?:nervous|sick|anxious|uncomfortable|cringe|itch|ill|queasy|drowsy|sad|uneasy"
        r"|want"
        r"|switch off|lose|tired|dizzy|angry|feel|happy)|(?:bores?|annoys?|irritates?|scares?|overwhelms?|depresses?"
        r"|depress"
        r"|confuses?|distracts?|bothers?|tires?|helps?|calms?|motivates?|relaxes|relax|bugs?|exhausts?|intimidates?"
        r"|frustrates?"
        r"|disgusts?|stresses|stress|wears?) me\b|gets? on my nerves|go(?:es)? over my head|rubs? me the wrong way"
        r"|gives? me (?:the creeps|migraines?|a headache|headaches|hives|heartburn|a rash|the ick|anxiety|joy"
        r"|nightmares)"
        r"|(?:appeals?|matters?|speaks?) (?:[a-z]+ ){0,3}to me|means? (?:more|a lot|everything|nothing) to me"
        r"|tastes? like [a-z\x20]{3,30} to me|(?:feels?|looks?|sounds?|reads?|tastes?|smells?) (?:[a-z-]+ ){1,3}to me"
        r"|upsets? my stomach|slows? me down|throws? me off|makes? my (?:skin|eyes|head|brain|blood))",
    ),
    triggered(  # "long meetings drain me"
        "me us",
        r"\b(?!tells?|gives?|sends?|shows?|asks?|lets?|brings?|calls?|pays?|charges?|owes?|offers?|texts?|emails?"
        r"|reminds?|wants?|teach(?:es)?"
        r"|told|gave|sent|showed|asked|let|brought|called|paid|left|made|with|for|to|of|from|by|on|at|in|like|between"
        r"|around|about|behind|than|and|get"
        r"|near|without|after|before|thanks?|thank|helped|needs?|contacts?|contact|helping|please|[a-z]+ed|[a-z]+ing"
        r"|got|took|put|kept|cost|hit"
        r"|writes?|answers?|not|against|over|both|all|costs?|gets?|takes?|makes?|keeps?|tell|ask|inform"
        r"|sees?)[a-z]{3,} (?:me|us)\b(?! (?:the|a|an|if"
        r"|why|how|that|what|back|know|about|some)\b)|\b(?:could|can|would|will|might|makes?|takes?|gets?|puts?"
        r"|sends?) (?:[a-z]+ )?(?:kill|hurt|ruin|trigger"
        r"|send|put|knock|wreck|floor|finish) me\b|\b(?:makes?|takes?|gets?|puts?|sends?|keeps?) (?:me|us) (?!to the"
        r"|the|a\b|an\b|\d)[a-z]+",
    ),
    triggered(  # "stairs are too steep for my knees"
        "for to",
        r"\b(?:is|are|isn't|aren't|can be|feels?|seems?) (?!new|news|clear|waiting|open|happening|going|looking|there"
        r"|(?!every|any|no)[a-z]+ing|it|this|that"
        r"|next|hard to|on|at|in )[^\x1a]{2,40} (?:for|to|with|by) (?:me|us|my (?:son|daughter|kids|wife|husband"
        r"|mother|father|parents|back|knees|eyes|stomach"
        r"|head|brain|skin|family))\b",
    ),
    triggered(  # "swimming is easier on my back"
        "my our",
        r"\b(?:(?:is|are)(?: (?:more|not|just|still|really|always|definitely|absolutely|simply))? my (?!problem"
        r"|question|plan|idea|turn|fault|next|current|last|guess|name|sister|brother"
        r"|wife|husband|mother|father|boss|friend|son|daughter|first|address|number|order|email|code|new|old|main"
        r"|result|draft|attempt|understanding|situation|concern|issue|point)[a-z]+"
        r"|(?:has|have|wins?|gets?|steals?|melts?) my (?:heart|vote|money|respect|attention|trust)|(?:floats?"
        r"|rocks?) my|(?:easier|better|harder|nicer|kinder|gentler|worse|tough|hard|good|bad)"
        r" (?:on|for) my)\b",
    ),
    triggered(  # "brunch is overrated"
        "overrated underrated king torture nightmare devil out option belong belongs are is family sacred plenty",
        r"\b(?:is|are) (?:[a-z]+ )?(?:overrated|underrated|king|queen|torture|hell|heaven|the devil"
        r"|a waste of (?:time|money|space)|sacred|plenty"
        r"|a no|for family|for the family|where it's at|worth every penny|not an option|a luxury i|bliss|poison"
        r"|a sin)\b(?! of the| in this)",
    ),
    triggered(  # "one coffee is all I need"
        "all much long far most enough plenty longest",
        r"\b(?:is|are) (?:about |just |pretty much )?(?:all (?:i|we|my)|as (?:long|much|far|many) as|the (?:longest"
        r"|most|furthest) (?:i|we|my)|(?:plenty)(?=$|[.,;]| for))\b",
    ),
    triggered(  # "safety comes before speed"
        "comes come beats beat trumps trump matters matter counts count wins win outranks outweighs ranks",
        r"\b(?:comes? (?:(?:well|far|way|long|always) )?(?:ahead of|before|above) (?!the end|the next|me\b)|(?:beats"
        r"|trumps"
        r"|outranks?|outweighs?|(?<!to\x20)beat) (?!my|me|us|it|him|them)[a-z]+"
        r"|wins? (?:out )?over [a-z]+(?: [a-z]+)?(?: for (?:me|us)| every time"
        r"| any day|$)|(?:matters?|counts?|means?) (?:far |much |way |a lot )?more (?:to me )?than)\b",
    ),
)
"""The effect of something on the speaker: "mornings suit me best"."""
SPECIFIC_SUBJECT = phrase(
    r"(?:it|he|she|they|this|that|these|those|there|his|her|their|its|which|who|you|i|we|i'm|that's|it's"
    r"|your (?!answers|repl"
    r"|explanations|tone)|so|the (?!more|less|smell|sound|taste|sight|thought|idea|usual|standard|typical|way you"
    r"|kind|sort)"
    r"|my (?:son|daughter|wife|husband|mum|mom|dad|boss|neighbou?r|doctor|teacher|friend|brother|sister|mother|father"
    r"|prof"
    r"|landlord|cat|dog|car|phone|laptop|back|knee|new|old)|our (?:neighbou?rs?|new|old|landlord|boss|teacher)"
    r"|otherwise|neither|none|either|both|any of|everything|don't|do|does|did|let|please|nothing|something"
    r"|any (?:help|idea|tips|advice|input)|help"
    r"|everything about|my (?:colleagues|team|american|kids|parents|flatmates?)|what(?! i| we)|how|why|where|if|and"
    r"|but|all (?:this|that|of)|yesterday|last)\b"
)
"""Subjects of the current task, about which nothing holds in general: "it", "this", "my boss"."""
IT_WHEN = phrase(  # "it annoys me when people are late"
    r"(?:it|that)(?:'s| is)?(?: (?:always|really|just|usually|so|much|far|a lot|way|never"
    r"|also)){0,2} (?:[a-z]+(?: [a-z]+){0,3} (?:for|to) (?:me|us)|(?:annoys|bothers"
    r"|irritates|helps|confuses|stresses|drives|distracts|throws|upsets|puts|makes|bugs|frustrates|motivates|calms"
    r"|scares|overwhelms|relaxes|suits|works"
    r"|saves|gets)(?: [a-z]+){0,5}) (?:when|whenever|if) (?!the |this |that |it |i (?:was|had))"
)
FOR_ME = phrase(  # "for me, price comes first"
    r"(?:for me|to me|to my mind|in my book|as far as i'm concerned|personally),? (?:it's |it is |is "
    r"|that's )?(?!the (?:first|next)"
    r"|it (?:was|did)|this|that)[^\x1a?]{0,80}\b(?:better|best|easier|more|less|important|matters?|counts?|first"
    r"|comes?|over"
    r"|than|must|essential|works?|beats?|always|never|should)\b"
)
_HEALTH_CONDITION = any_of(
    """celiac / coeliac / diabetes / asthma / epilepsy / adhd / add / autism / dyslexia / dyscalculia / dyspraxia
    arthritis / migraines / ibs / crohn'?s / colitis / lupus / gout / tinnitus / vertigo / eczema / psoriasis / rosacea
    endometriosis / hypertension / (?:high|low) blood (?:pressure|sugar) / heart (?:condition|disease|failure|problem)
    pacemaker / kidney (?:disease|problem) / hearing aids? / prosthe(?:sis|tic) / stoma / epi-?pen / insulin
    service dog
    guide dog / screen ?reader / wheelchair / walking (?:stick|frame) / cane / walker
    (?:bad|weak|dodgy|bum|poor|artificial|arthritic
    trick|chronic|limited|reduced|herniated|slipped|only one|one good) (?:back|knees?|hips?|shoulders?|heart
    lungs|eyesight
    hearing|vision|mobility|disc|pain|eye|arm|leg|hand|kidney|ear|wrists?|ankles?) / (?:[a-z-]+ )?allerg(?:y|ies)
    intolerance / [a-z]*phobia / reflux / gerd / ms / multiple sclerosis / parkinson'?s / osteoporosis / fibromyalgia
    sleep apno?ea / anxiety / ptsd / ocd / bipolar / aphantasia / rsi / carpal tunnel / tremor / colou?r.?blindness
    no sense of (?:smell|taste|direction) / aphasia / hay fever / histamine / varifocals
    sensitive (?:skin|stomach|teeth)
    no (?:car|oven|dishwasher|freezer|microwave|balcony|garden|driving licence|credit card|smartphone|printer|dryer)
    blood thinners / warfarin / statins / beta.?blockers / lithium / ssris / antidepressants"""
)
_ATTRIBUTE = any_of(
    """vegetarians? / vegans? / pescatarian / coeliac / celiac / diabetic / asthmatic / epileptic / autistic / dyslexic
    deaf / blind / hard of hearing / colou?r.?blind / partially sighted / visually impaired / lactose
    gluten / fructose
    muslim / jewish / hindu / sikh / mormon / buddhist / orthodox / adventist / quaker / teetotal(?:ler)? / sober
    in a wheelchair / a wheelchair user / on dialysis / on oxygen / mute / wheelchair.?bound / bedridden / nut-free
    in recovery / pregnant / breastfeeding / left.?handed / disabled / neurodivergent
    immuno(?:compromised|suppressed)
    claustrophobic / squeamish / kosher / halal / allergic / intolerant / red-green / underage / a minor / afraid of
    scared of / scared / housebound / on (?:blood thinners|warfarin|statins|beta.?blockers|lithium|insulin|ssris
    antidepressants|medication|(?:an? )?(?:[a-z-]+ ){0,3}(?:diet|budget|income)|keto|nights|call every)
    governed by / audited / certified / bound by / subject to
    (?:legally |contractually )?(?:required|obliged) to / under (?:an? )?nda / regulated by
    not (?:allowed|supposed|permitted) to / prohibited from / restricted to / limited to"""
)
_DAYS = (
    r"(?:(?:on |at |in |before |after |past |during )?(?:the )?(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
    r"|weekends?|nights?|evenings?|mornings?|noon|\d)"
)
_PER_PERIOD = r"(?:an?|per|each|every) (?:month|week|day|year|night|person|head|meal|session|evening|term|quarter)\b"
_AMOUNT = r"(?:\d|one|two|three|four|five|six|ten|twelve|fifteen|twenty|thirty|forty|fifty|hundred|half)"
PERSONAL_FACTS = (
    triggered(  # "vegan since 2019"
        "vegetarian vegan pescatarian coeliac celiac diabetic asthmatic dyslexic allergic teetotal lactose",
        r"(?:[a-z]+ )?(?:vegetarian|vegan|pescatarian|coeliac|celiac|diabetic|asthmatic|dyslexic|allergic to [a-z]+"
        r"|teetotal|lactose intolerant)(?: (?:since|here|for|by|from)\b|$)",
    ),
    triggered(  # "my stomach rejects onions"
        """brain head stomach gut eyes ears skin knees hands memory attention concentration hearing eyesight wallet
        account heart nerves feet palate
        buds back body fingers""",
        r"(?:my|our) (?:brain|head|stomach|gut|eyes|ears|skin|knees|hands|memory|attention span|concentration|hearing"
        r"|eyesight|wallet|bank account|heart|nerves|feet|palate|taste buds|body"
        r"|fingers|back) (?:just |simply |always |really |only )?(?!every|about|and|on|in|with|to|when|was|were"
        r"|hurts?\b|has been|had|started|went|is killing|are killing|is hurting|got|said|feels)[a-z']+",
    ),
    triggered(  # "Fridays are for family"
        """mondays tuesdays wednesdays thursdays fridays saturdays sundays
        weekends evenings mornings weekend nights every after before""",
        r"(?:(?:on|in|at) )?(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days|weekends|evenings|mornings"
        r"|nights)\b (?:(?:i|we) (?!went|was|were|had|always had)|(?:are|is) (?:for|out|off|sacred|taken|reserved|my"
        r"|our))"
        r"|\b(?:i|we|my (?:kids|son|daughter|children))(?: [a-z]+){1,4} (?:(?:on|every|most|every other) (?:(?:mon"
        r"|tues|wednes|thurs|fri|satur|sun)days|weekends?|(?:other )?weekend|evening|night|morning))\b"
        r"|\bi (?:go to bed|get up|wake up|finish work|start work|get home) (?:at|before|after|around) ",
    ),
    triggered(  # "we store nothing abroad for legal reasons"
        "reasons orders law policy principle grounds legally",
        r"\b(?:i|we|my|our|no|nothing)\b[^\x1a]{2,120}\b(?:for (?:legal|medical|health|religious|ethical|tax|privacy"
        r"|security|compliance|insurance|safety"
        r"|environmental|moral|political) reasons|(?:doctor's|doctors) orders|by law|on principle|on (?:moral|ethical"
        r"|religious) grounds|company policy)\b",
    ),
    triggered(  # "in this team we review everything"
        "house household family team company office repo project here us lab kitchen shop place department",
        r"\b(?:(?:in|at|on) (?:this|our|my) (?:house|household|family|team|company|office|repo|project|lab|kitchen"
        r"|shop|place|department|firm|school"
        r"|practice|codebase)|around here|with us),? (?:we|i|everyone|nobody|everything|all|no one) (?!are (?:looking"
        r"|trying|having)|have (?:a|an|the|been)|got|had"
        r"|were|was|need|want|use the)[a-z]",
    ),
    triggered(  # "I can't swim"
        "drive swim kneel bend taste smell run jump carry lost had fall under comply operate",
        r"\b(?:i (?:can't|cannot|can no longer|don't) (?:drive|swim|kneel|bend|taste|smell|jump)\b|i (?:lost"
        r"|had) (?:my|a|an) (?:sight|hearing|sense of|(?:left|right) [a-z]+|leg|arm"
        r"|gastric|[a-z]* ?transplant|[a-z]* ?bypass|stroke|heart attack|hysterectomy|mastectomy)|we (?:fall under"
        r"|operate under|must comply with|comply with|answer to))\b",
    ),
    triggered(  # "as a vegetarian"
        "as",
        r"\bas an? (?:[a-z]+ )?(?:vegetarian|vegan|muslim|jew|hindu|sikh|diabetic|coeliac|celiac|wheelchair user"
        r"|deaf person|blind person|teetotaller|pescatarian)\b",
    ),
    triggered(  # "I've had a hip replaced"
        "had",
        r"\b(?:i've|i have) had (?:a|an|my|two|both|one) [a-z]+(?: [a-z]+)? (?:replaced|removed|fused|amputated"
        r"|transplanted|fitted)\b",
    ),
    triggered(  # "I'm self-taught"
        "self-taught self taught family under",
        r"\b(?:i'm|i am|we're|we are) (?:self-taught|a family of|under an? (?:[a-z-]+ )?(?:contract|non-compete|nda"
        r"|order|ban|embargo))",
    ),
    triggered(  # "we can't accept cash"
        "can't cannot",
        r"\bwe (?:can't|cannot|can not|aren't able to) (?:ever )?(?:use|accept|ship|share|store|publish|disclose|host"
        r"|install|upgrade|run|take on|serve|sell)\b"
        r"(?! (?:it|this|that|the|them)\b)",
    ),
    triggered(  # "I have asthma"
        """i've ive we've have has got suffer live diagnosed carry wear use need take rely had""",
        r"\b(?:i've(?: got)?|i have(?: got)?|we've(?: got)?|we have(?: got)?|i got|(?:i|we) (?:suffer from|live with"
        r"|carry|wear|use"
        r"|need|take|rely on)|(?:my|our) [a-z]+ has|i(?:'ve been| was) diagnosed with)"
        r"(?: (?:a|an|my|the|very|quite|really|severe|mild|bad|serious|type (?:1|2|one|two)|chronic"
        rf"|an?d? [a-z]+)){{0,3}} {_HEALTH_CONDITION}\b",
    ),
    triggered(  # "my son is diabetic"
        """i'm im am we're are i've been was my our is""",
        r"\b(?:(?:i|we)(?:'m|m|'re| am| are|'ve been| have been|'ve always been)|(?:my|our) [a-z]+ (?:is"
        r"|are))(?: (?:also|both|very"
        r"|severely|mildly|strictly|slightly|highly|always|a|an|strict|lifelong|mostly|pretty|terribly|practising"
        r"|practicing"
        rf"|mortally|type (?:1|2|one|two)|profoundly|legally|partly|half|fully)){{0,3}} {_ATTRIBUTE}\b",
    ),
    triggered(  # "we eat kosher"
        "keep eat observe follow practise practice fast live stay go",
        r"\b(?:i|we) (?:keep|eat|observe|follow|practi[sc]e|live|stay|go|fast)(?: (?:strictly|only|a|an|mostly|the"
        r"|fully)){0,2}"
        r" (?:[a-z]+-free|kosher|halal|vegan|vegetarian|shabbat|sabbath|keto|low.carb|plant.based|lent|during ramadan"
        r"|mediterranean)\b",
    ),
    triggered(  # "I don't have a car"
        "have own",
        r"\b(?:i|we) (?:don't|do not) (?:have|own) (?:a|an|any) (?:car|oven|dishwasher|tumble dryer|dryer|freezer"
        r"|microwave|food processor|blender|balcony|garden|credit card|smartphone|printer|tv|driving licence|licence"
        r"|license|gpu)\b",
    ),
    triggered(  # "I'm off on Fridays"
        "off closed away unavailable work don't can't never train available out",
        r"\b(?:(?:i'm|i am|we're|we are) (?:always )?(?:off|closed|away|unavailable|out|not (?:available|reachable"
        rf"|in)) (?:on |every )?{_DAYS}"
        r"|(?:i|we) (?:don't|do not|can't|cannot|never|won't|only) (?:work|train|drive|travel|meet|do [a-z]+"
        rf"|take [a-z]+)(?: [a-z]+)? {_DAYS}"
        r"|i work (?:night|late|early|rotating)? ?(?:nights|shifts|weekends|part.time|lates|earlies)\b)",
    ),
    triggered(  # "our data must not leave the EU"
        "can't cannot may must mustn't never won't",
        r"\b(?:my|our) (?:[a-z']+ ){1,4}(?:can't|cannot|may not|must not|mustn't|can never"
        r"|may never) (?:ever )?(?:leave|go|be"
        r" (?:stored|shared|sent|used|changed|moved|logged|disclosed|touched|exposed)|run|see|exceed|touch|have|eat"
        r"|include|appear)\b",
    ),
    triggered(  # "our contract forbids overtime"
        "allow allows let permit permits cover covers forbids forbid prohibits bans requires only doesn't won't",
        r"(?:my|our) (?:[a-z-]+ ){1,3}(?:(?:doesn't|does not|won't|don't|do not) (?:allow|let|permit|cover|accept)"
        r"|(?:forbids?|prohibits?|bans?|requires?|only (?:allows?|accepts?|covers?|takes?|supports?|runs?|lets?)))\b",
    ),
    triggered(  # "we spend 40 euros per week"
        "month week day year night person head meal session evening term quarter",
        r"\b(?:(?:i|we)(?:'ve)? (?:only |never )?(?:have|got|can (?:spend|afford|spare|put in|invest)|spend|budget"
        r"|set aside|put aside|cap"
        rf"|allow|want to spend|get|pay)|[a-z\x20]{{0,40}}(?:budget|limit|cap|allowance"
        rf"|maximum) is) [^\x1a]{{0,60}}{_AMOUNT}[^\x1a]{{0,30}} {_PER_PERIOD}",
    ),
    triggered(  # "I keep meals under 20 euros"
        "cap limit keep",
        rf"\b(?:i|we) (?:cap|limit|keep|restrict) [^\x1a]{{2,60}} (?:at|to|under|below) [^\x1a]{{0,12}}{_AMOUNT}",
    ),
    triggered(  # "English isn't my first language"
        "language tongue english",
        r"\b[a-z]+ (?:isn't|is not) my (?:first|native|mother)\b|\bmy english is (?:not|bad|weak|basic|so-so|poor)\b",
    ),
)
"""Facts that all further work must respect: "I have asthma", "we don't work on Fridays"."""
