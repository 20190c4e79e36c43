import { assignedTo } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";
import { code } from "./growing.js";
import { callsMatching, madeAgain } from "./made_again.js";
import type { Rule } from "./rule.js";

export const clientPerRequest: Rule = {
  id: "TM-L026",
  name: "client-per-request",
  severity: "error",
  finds:
    "A client, session, connection or engine created for each request or in a loop, and not closed.",
  why: "Each has its own connection pool, buffers and often a thread; without `close()` they stay until the garbage collector breaks their cycles, or forever.",
  speed: "10 KiB to several MiB for each request, and a socket.",
  before: `
import httpx

@app.get("/weather")
async def weather(city: str):
    client = httpx.AsyncClient()
    return (await client.get("https://example.com", params={"q": city})).json()
`,
  after: `
import httpx

client = httpx.AsyncClient()

@app.get("/weather")
async def weather(city: str):
    return (await client.get("https://example.com", params={"q": city})).json()
`,
  ignore: "The framework closes it at the end of the request.",
  proof:
    "`tidemark diagnose PID` reports the kind `handle-leak`; `tidemark heap PID` counts the clients.",
  *check(file) {
    for (const call of callsMatching(CLIENTS, file)) {
      const repeat = madeAgain(call, file);
      if (repeat === null) {
        continue;
      }
      const fate = file.resources.fateOf(call.node);
      const isCostly = COSTLY.test(call.full);
      const isLeft =
        fate === "open" ||
        (isCostly && fate === "moved" && repeat.kind === "handler" && isLocal(call.node));
      if (isLeft) {
        yield {
          node: call.node,
          message: `${code(call.callee.text)} is created ${repeat.text}, and nothing closes it: create one for the whole program`,
        };
      }
    }
  },
};

function isLocal(call: SyntaxNode): boolean {
  return assignedTo(call)?.kind === "identifier";
}

const CLIENTS =
  /^(?:requests\.(?:Session|session)|httpx\.(?:Async)?Client|aiohttp\.(?:ClientSession|TCPConnector)|urllib3\.(?:PoolManager|HTTPConnectionPool|HTTPSConnectionPool)|http\.client\.HTTPS?Connection|(?:sqlite3|psycopg|psycopg2|pymysql|MySQLdb|mysql\.connector|cx_Oracle|oracledb|pyodbc|duckdb|aiosqlite|asyncpg|aiomysql|snowflake\.connector|clickhouse_driver|trino\.dbapi)\.connect|psycopg\.(?:Async)?Connection\.connect|pymongo\.(?:Async)?MongoClient|motor\.motor_asyncio\.AsyncIOMotorClient|redis\.(?:asyncio\.)?(?:Strict)?(?:Redis|from_url|ConnectionPool|Redis\.from_url|StrictRedis\.from_url|RedisCluster)|aioredis\.(?:from_url|create_redis|create_redis_pool|Redis)|boto3\.(?:client|resource|Session|session\.Session)|aiobotocore\.session\.get_session|sqlalchemy\.(?:create_engine|engine\.create_engine|ext\.asyncio\.create_async_engine)|sqlmodel\.create_engine|elasticsearch\.(?:Async)?Elasticsearch|opensearchpy\.(?:Async)?OpenSearch|kafka\.Kafka(?:Producer|Consumer)|aiokafka\.AIOKafka(?:Producer|Consumer)|confluent_kafka\.(?:Producer|Consumer)|pika\.(?:BlockingConnection|SelectConnection)|aio_pika\.connect(?:_robust)?|grpc\.(?:aio\.)?(?:insecure_channel|secure_channel)|openai\.(?:Async)?(?:Azure)?OpenAI|anthropic\.(?:Async)?Anthropic|paramiko\.(?:SSHClient|Transport)|ftplib\.FTP(?:_TLS)?|smtplib\.SMTP(?:_SSL)?|imaplib\.IMAP4(?:_SSL)?|socket\.(?:socket|create_connection)|websockets?\.(?:connect|create_connection|WebSocketApp)|websocket\.create_connection|google\.cloud\.\w+\.Client|azure\.\S+Client|qdrant_client\.(?:Async)?QdrantClient|weaviate\.(?:Client|connect_to_\w+)|chromadb\.\w*Client|neo4j\.(?:Async)?GraphDatabase\.driver|cassandra\.cluster\.Cluster|zmq\.(?:asyncio\.)?Context|nats\.connect|asyncio\.open_connection|telnetlib\.Telnet|ldap3\.Connection|influxdb_client\.InfluxDBClient|minio\.Minio|selenium\.webdriver\.\w+|playwright\.\S+launch|docker\.from_env|asyncssh\.connect)$/;

const COSTLY =
  /create_(?:async_)?engine$|MongoClient$|boto3|Elasticsearch$|ClientSession$|grpc|OpenAI$|Anthropic$/;
