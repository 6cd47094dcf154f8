"""客服: a broken appliance, in Chinese."""

from conversations.filler import log_zh
from conversations.script import Conversation, assistant, failed, system, tool, user

CONVERSATION = Conversation(
    name="客服",
    language="zh",
    messages=[
        system("你是清岚家电的客服助手。禁止向客户透露其他客户的信息。赔偿金额超过300元必须由主管批准。"),
        user("你好，我上周买的空气净化器 QL-K500 开机就报错 E07，订单号是 QL20260305-77182。"),
        assistant("您好，非常抱歉给您带来不便。请问怎么称呼您？"),
        user("我姓周，周晓岚。家里有刚出生的宝宝，很着急。"),
        assistant(
            "周女士您好，我马上为您查询。",
            tool("find_order", {"order": "QL20260305-77182"}, {"status": "已签收", "price": 1899}),
            tool("read_history", {"order": "QL20260305-77182"}, log_zh(50, 5)),
        ),
        assistant("您的订单已签收，价格1899元，还在7天无理由退货期内。"),
        assistant("", failed("query_manual", {"model": "QL-K500", "code": "E07"}, "知识库服务不可用：503")),
        assistant(
            "", tool("query_manual", {"model": "QL-K500", "code": "E07"}, "E07：风机转速异常，请检查滤网包装膜是否取下")
        ),
        assistant("E07 表示风机转速异常，请您先确认滤网的塑料包装膜是否已经取下。"),
        user("取下来了，还是一样报错。"),
        assistant("那应该是风机故障。您希望退货还是换货？"),
        user("我要换货，但是新机器必须在3月15日之前送到，宝宝那天从医院回家。"),
        assistant(
            "",
            tool("check_stock", {"model": "QL-K500", "city": "杭州"}, {"stock": 3, "warehouse": "HZ-02"}),
            tool("list_routes", {"warehouse": "HZ-02"}, log_zh(50, 9)),
        ),
        assistant("杭州仓 HZ-02 还有3台现货，可以为您安排换货。"),
        user("送货的时候不要按门铃，请打电话 138-0013-8000。"),
        assistant("好的，已备注：不按门铃，电话联系。"),
        assistant(
            "", tool("create_exchange", {"order": "QL20260305-77182"}, {"exchange": "HH-990213", "eta": "2026-03-13"})
        ),
        assistant("换货单已经创建，单号 HH-990213，预计2026-03-13送达。"),
        user("旧机器怎么处理？还有这几天的损失，能赔偿吗？"),
        assistant("快递员上门时会取回旧机器。赔偿方面，我可以为您申请200元的优惠券。"),
        user("可以，那就优惠券吧。"),
        assistant("", tool("issue_coupon", {"amount": 200, "customer": "周晓岚"}, {"coupon": "YHQ-5567"})),
        assistant("优惠券 YHQ-5567（200元）已发放到您的账户。后续还需要仓库确认出库，我会继续跟进 HH-990213。"),
    ],
    essentials=[
        "QL-K500",
        "E07",
        "QL20260305-77182",
        "周晓岚",
        "新机器必须在3月15日之前送到",
        "不要按门铃",
        "138-0013-8000",
        "HH-990213",
        "2026-03-13",
        "YHQ-5567",
    ],
)
