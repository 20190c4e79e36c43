/** Which page an address shows. */
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Route, Switch } from "wouter";
import { useTheme } from "../theme/theme.js";
import { ActionsPage } from "./ActionsPage.js";
import { AlertsPage } from "./AlertsPage.js";
import { ArtifactPage, ArtifactsPage } from "./ArtifactsPage.js";
import { Refused } from "./frame/api.js";
import { NowContext, useLiveNow } from "./frame/live.js";
import { useQueryText } from "./frame/timeRange.js";
import { IngestPage } from "./IngestPage.js";
import { InstancePage } from "./InstancePage.js";
import { ServicePage } from "./ServicePage.js";
import { ServicesPage } from "./ServicesPage.js";
import { SizesPage } from "./SizesPage.js";
import { VerdictsPage } from "./VerdictsPage.js";

const client = new QueryClient({
  defaultOptions: {
    queries: {
      retry: (failures, error) => !(error instanceof Refused) && failures < 2,
      refetchOnWindowFocus: false,
    },
  },
});

export function FleetApp() {
  return (
    <QueryClientProvider client={client}>
      <Pages />
    </QueryClientProvider>
  );
}

/** A name may hold any character, `/` among them: it is a parameter of the address. */
function Named({ of }: { of: (name: string) => ReactNode }) {
  return of(new URLSearchParams(useQueryText()).get("name") ?? "");
}

function Pages() {
  const [theme, toggleTheme] = useTheme();
  const shared = { theme, toggleTheme };
  return (
    <NowContext value={useLiveNow()}>
      <Switch>
        <Route path="/">
          <ServicesPage {...shared} />
        </Route>
        <Route path="/service">
          <Named of={(name) => <ServicePage key={name} name={name} {...shared} />} />
        </Route>
        <Route path="/verdicts">
          <VerdictsPage {...shared} />
        </Route>
        <Route path="/sizes">
          <SizesPage {...shared} />
        </Route>
        <Route path="/alerts">
          <AlertsPage {...shared} />
        </Route>
        <Route path="/actions">
          <ActionsPage {...shared} />
        </Route>
        <Route path="/artifacts">
          <ArtifactsPage {...shared} />
        </Route>
        <Route path="/artifacts/:id/:name">
          {({ id, name }) => <ArtifactPage key={`${id}/${name}`} id={id} name={name} {...shared} />}
        </Route>
        <Route path="/ingest">
          <IngestPage {...shared} />
        </Route>
        <Route path="/instance/:stream">
          {({ stream }) => <InstancePage key={stream} stream={stream} {...shared} />}
        </Route>
        <Route>
          <p className="empty">There is no such page.</p>
        </Route>
      </Switch>
    </NowContext>
  );
}
