/** A button that asks the collectors for the profile of a service, and the outcome of the newest request. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { formatCount, formatMoment } from "../format/numbers.js";
import { askRequests, requestProfile } from "./frame/api.js";

const FOR_MS = 300_000;

export function ProfileRequest({ service }: { service: string }) {
  const client = useQueryClient();
  const key = ["requests", service];
  const query = useQuery({ queryKey: key, queryFn: () => askRequests(service) });
  const change = useMutation({
    mutationFn: () => requestProfile(service, FOR_MS),
    onSettled: () => client.invalidateQueries({ queryKey: key }),
  });
  const [newest] = query.data?.requests ?? [];
  const open = newest !== undefined && newest.untilMs > Date.now() ? newest : null;
  const programs = open?.hosts.reduce((sum, host) => sum + host.programs, 0) ?? 0;
  const reasons = [...new Set(open?.hosts.flatMap(({ why }) => (why === "" ? [] : [why])))];
  return (
    <section className="profile-request" aria-label="Profile on request">
      <button
        type="button"
        className="toggle"
        disabled={(open !== null && open.programs === undefined) || change.isPending}
        onClick={() => change.mutate()}
      >
        Profile for 5 minutes
      </button>
      {open === null ? null : (
        <span>
          {`Requested${open.programs === undefined ? "" : ` by ${open.by} for ${formatCount(open.programs.length)} of its programs`} until ${formatMoment(open.untilMs)}: ${formatCount(programs)} with the agent${reasons.length === 0 ? "" : `; ${reasons.join("; ")}`}`}
        </span>
      )}
      {change.error === null ? null : <span role="alert">{change.error.message}</span>}
    </section>
  );
}
