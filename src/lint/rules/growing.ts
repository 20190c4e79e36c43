/** What the rules about containers share. */
import type { FileFacts } from "../flow/file_facts.js";
import type { Growth } from "../flow/growth.js";
import {
  isAdmitted,
  isFixedKey,
  isFromArguments,
  isRegistration,
  isTypeLike,
} from "../flow/registration.js";
import type { Scope } from "../scopes/scope.js";
import type { Use } from "../scopes/uses.js";
import { mentions } from "../syntax/expressions.js";
import type { SyntaxNode } from "../syntax/tree.js";

/** Nothing drops entries: the container has no limit, nothing removes, and nothing compares its length with a limit. */
export function onlyGrows({ container, shrinks, isChecked, grows }: Growth): boolean {
  return !container.isBounded && shrinks.length === 0 && !isChecked && grows.length > 0;
}

/** A name as messages show it. */
export function code(text: string): string {
  return `\`${text.replaceAll(/\s+/g, " ")}\``;
}

/** "gains an entry". */
export function gains({ container }: Growth): string {
  return container.kind === "dict" ? "gains an entry for each new key" : "gains an entry";
}

export interface Suspect {
  readonly use: Use;
  /** "in each call of `f`". */
  readonly when: string;
  /** The file shows that the code runs again and again. */
  readonly isRepeated: boolean;
}

/** The use by which a container grows with the program's work; null where it grows with its text alone, as registries do. */
export function growingUse(
  growth: Growth,
  file: FileFacts,
  /** Whether a function handles work, whatever the names of what it adds. */
  isWorking: (use: Use) => boolean = () => false,
): Suspect | null {
  if (growth.container.kind === "queue") {
    return null; // TM-L024
  }
  const uses = growth.grows.filter(
    (use) =>
      !isRegistration(use) &&
      !isTypeLike(use.key) &&
      use.by !== "[]+=" &&
      !isFixedKey(use.key, use.scope) &&
      !isAdmitted(use) &&
      !isFirst(use, growth),
  );
  for (const use of uses) {
    const repeat = file.repeats.of(use.at);
    if (repeat !== null && repeat.origin !== "loop") {
      return { use, when: repeat.text, isRepeated: true };
    }
  }
  const use = uses.find((each) => isWork(each, growth, isWorking(each)));
  const repeat = use === undefined ? null : file.repeats.of(use.at);
  const name = use?.scope.functionAround?.name;
  return use === undefined
    ? null
    : {
        use,
        when:
          repeat?.kind === "called"
            ? repeat.text
            : `in each call of ${name ? code(name) : "a lambda"}`,
        isRepeated: false,
      };
}

/** What an object is made with does not grow. */
function isFirst({ scope }: Use, { slot }: Growth): boolean {
  const isOfInstance = slot.kind === "class" && !slot.owner.writes.has(slot.name);
  return isOfInstance && /^__(?:init|post_init)__$/.test(scope.functionAround?.name ?? "");
}

/** Names of containers that hold what a program works on. */
const WORK =
  /cache|points|series|hits|attempts|usage|memo|histor|(?:^|_)logs?(?:$|_)|event|seen|result|request|session|message|msg|errors|failure|record|stats|metric|pending|buffer|visited|processed|entries|users|clients|connections|jobs|tasks|trace|audit|snapshot|sample|embedding|predict|output|response|payload|order|notification|reading|measurement|alerts|docs|documents|rows|lines|items|data|values|store|tensor|losses|images|batches|frames|scores|tokens|chunks|state/i;
/** Names of containers that hold what a program is made of. */
const PARTS =
  /registr|handlers|types|modules|converters|codecs|rules|commands|hooks|alias|dirs|dispatch|formats|levels|plugins|warn|shown|backends|loaded|known|callbacks|listeners|classes|providers|extensions|_map$|templates|flags|config|dtype|schema|status|names|paths|descriptors|libs|endpoint|signature/i;

/** Without a sign that the function runs again, the names must show it, and what it adds depends on how it is called. */
function isWork(use: Use, { slot }: Growth, isWorking: boolean): boolean {
  const scope = use.scope.functionAround;
  const added = use.key ?? use.value;
  const isNamed =
    !PARTS.test(slot.name) &&
    (isWorking ||
      WORK.test(slot.name) ||
      addsWork(use) ||
      (slot.kind === "class" && use.key === null));
  const isSetUp = scope !== null && scope.name === "__init__" && slot.kind !== "class";
  return isNamed && !isSetUp && isFromArguments(added, scope) && !isPlatform(added);
}

/** What a program is called with again and again, by the name of the parameter. */
const WORK_PARAMETERS =
  /^_?(?:request|req|event|evt|message|msg|user|username|job|item|payload|record|session|order|query|row|entry|task|doc|document|text|prompt|client|conn|connection|\w*_id|uid|uuid|url|uri|token|body|packet|frame|sample|batch|email|tick|trade|quote|result|response|point|reading|measurement|customer|address|ip|symbol|transaction|tx|chunk|sentence|image|embedding|vector|alert|metric|observation|trace|span|notification|host|peer|upload|document|article|post|comment|cart|visitor)$/;

function addsWork(use: Use): boolean {
  const parameters = use.scope.functionAround?.parameters ?? [];
  return parameters.some(
    ({ name }) =>
      WORK_PARAMETERS.test(name) &&
      [use.key, use.value].some((added) => added !== null && mentions(added, name)),
  );
}

/** A machine has one of these. */
function isPlatform(added: SyntaxNode | null): boolean {
  return /\b(?:sys_?version|device|device_capacity|capability|terse|platform|arch|encoding|codec|locale|alphabet|domain|lang)\b/.test(
    added?.text ?? "",
  );
}

/** Names of classes of which a program has one object. */
export const LONG_LIVED =
  /(?:Service|Server|Manager|Store|Cache|Registry|Middleware|Tracker|Monitor|Worker|Consumer|Listener|Dispatcher|Broker|Hub|Engine|Daemon|Scheduler|Agent|Bot|Gateway|Repository|Recorder|Metrics|Controller|Proxy|Coordinator|Supervisor|Limiter|Throttler?|Telemetry|Auditor|EventBus|Bus|Feed|Memory|Index|Client|Pool|Hook|Callback|Trainer|Logger|Api|App)$/;

/** Each instance gets its own copy of what a dataclass or a model declares in its body. */
export function isDeclared(owner: Scope, file: FileFacts): boolean {
  return (
    owner.decorators.length > 0 ||
    file.names
      .baseNames(owner)
      .some((base) =>
        /(?:^|\.)(?:BaseModel|BaseSettings|NamedTuple|TypedDict|Struct|Enum|Schema)$/.test(base),
      )
  );
}
