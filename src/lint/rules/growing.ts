/** Shared by the rules about containers. */
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

/** A name in the form that messages use. */
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
  /** The file shows that the code runs repeatedly. */
  readonly isRepeated: boolean;
}

/**
 * The use by which a container grows with the program's work; null if it grows only with the program's text, as
 * registries do.
 */
export function growingUse(growth: Growth, file: FileFacts): Suspect | null {
  if (growth.container.kind === "queue") {
    return null; // TM-L024
  }
  const uses = growth.grows.filter(
    (use) =>
      !isRegistration(use, (scope) => file.repeats.handles(scope)) &&
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
  const use = uses.find(
    (each) =>
      isWork(each, growth) &&
      !(each.scope.functionAround && file.repeats.isOnlyCalledAtImport(each.scope.functionAround)),
  );
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

/** Items that a constructor adds are not growth. */
function isFirst({ scope }: Use, { slot }: Growth): boolean {
  const isOfInstance = slot.kind === "class" && !slot.owner.writes.has(slot.name);
  return isOfInstance && /^__(?:init|post_init)__$/.test(scope.functionAround?.name ?? "");
}

/** Names of containers that hold the parts of a program. */
const PARTS =
  /registr|handlers|types|modules|converters|codecs|rules|commands|hooks|alias|dispatch|formats|plugins|warn|backends|loaded|callbacks|listeners|classes|providers|extensions|config|dtype|descriptors|libs/i;

/** If nothing shows that the function runs repeatedly, its additions must depend on its arguments. */
function isWork(use: Use, { slot }: Growth): boolean {
  const scope = use.scope.functionAround;
  const added = use.key ?? use.value;
  const isSetUp =
    slot.kind === "class"
      ? !slot.owner.writes.has(slot.name) && JOINING.test(scope?.name ?? "") && !addsWork(use)
      : scope?.name === "__init__";
  return !PARTS.test(slot.name) && !isSetUp && isFromArguments(added, scope) && !isPlatform(added);
}

/** Methods that assemble an object from its parts, unless their parameters name work: `add_route`, not `add_order`. */
const JOINING =
  /^_*(?:async_)?(?:add|declare|define|set|include|use|bind|extend|connect|mount|enable|discover|populate|attach|append|push)(?:_|[A-Z])/;
const WORK_PARAMETERS =
  /^_?(?:\w*_id|uid|uuid|id|\w*(?:request|event|message|msg|user|job|item|payload|record|session|order|query|row|entry|task|doc|document|text|prompt|url|token|packet|sample|email|result|response|reading|customer|transaction|chunk|sentence|image|embedding|vector|alert|metric|observation|span|notification|article|comment|visitor))$/;

function addsWork({ key, value, scope }: Use): boolean {
  const parameters = scope.functionAround?.parameters ?? [];
  return parameters.some(
    ({ name }) =>
      WORK_PARAMETERS.test(name) &&
      [key, value].some((added) => added !== null && mentions(added, name)),
  );
}

/** A machine has one of these. */
function isPlatform(added: SyntaxNode | null): boolean {
  return /\b(?:sys_?version|device|device_capacity|capability|terse|platform|arch|encoding|codec|locale|alphabet|domain|lang)\b/.test(
    added?.text ?? "",
  );
}

/** Names of classes of which a program has only one object. */
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
