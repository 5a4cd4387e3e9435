import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ErrorBoundary, LocationProvider, Route, Router, useLocation } from 'preact-iso';
import { consoleRoot, screenHref } from '../lib/address.ts';
import { ApiError, session } from '../lib/api.ts';
import { live } from '../lib/live.ts';
import { resumeSession } from '../lib/session.ts';
import { Button } from '../ui/button.tsx';
import { Page } from '../ui/page.tsx';
import { Empty, Notice, Problems } from '../ui/problems.tsx';
import { Time } from '../ui/text.tsx';
import { Keys } from './keys.tsx';
import { Mark, Nav } from './nav.tsx';
import { screens } from './screens.ts';
import { SignIn } from './sign-in.tsx';

export function App(): VNode {
  if (session.value === undefined) return <Opening />;
  if (session.value === null) return <SignIn />;
  return (
    <LocationProvider scope={consoleRoot}>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <div class="frame">
        <Nav />
        <main id="main" class="main" tabIndex={-1}>
          <Lost />
          <Screens />
        </main>
      </div>
      <Keys />
    </LocationProvider>
  );
}

/** The time without an answer after which the page says so. It goes on waiting. */
const lateMs = 8_000;
/** The pause before a server that cannot answer is asked again. */
const retryMs = 5_000;
const late = new ApiError(
  0,
  [{ error_code: '', message: 'The server has not answered yet', details: '' }],
  null,
);

/** Stands in place of the page until it is known who is signed in. */
function Opening(): VNode {
  const [error, setError] = useState<ApiError | null>(null);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const controller = new AbortController();
    let timer = setTimeout(() => setError(late), lateMs);
    resumeSession(controller.signal).catch((thrown: unknown) => {
      clearTimeout(timer);
      if (controller.signal.aborted) return;
      if (!(thrown instanceof ApiError)) throw thrown;
      setError(thrown);
      if (thrown.isPassing) timer = setTimeout(() => setTurn(turn + 1), retryMs);
    });
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [turn]);
  return (
    <main class="sign-in" aria-busy={error === null}>
      <div class="sign-in-form">
        <h1>
          <Mark />
          sluice
        </h1>
        <Problems error={error} onRetry={() => setTurn(turn + 1)} />
        <p class="muted" role="status">
          {error?.isPassing === true ? 'The page tries again by itself.' : 'Checking your session …'}
        </p>
      </div>
    </main>
  );
}

/** Says that what is shown may be old. The browser connects again by itself. */
function Lost(): VNode | null {
  const { lostSince } = live.value;
  if (lostSince === null) return null;
  return (
    <Notice role="alert">
      The connection to the server was lost at <Time at={lostSince} />. The page retries, and shows the last
      known state until then.
    </Notice>
  );
}

function Screens(): VNode {
  const [failure, setFailure] = useState<Error | null>(null);
  const { url } = useLocation();
  useEffect(() => setFailure(null), [url]);
  if (failure !== null) return <Broken error={failure} />;
  return (
    <ErrorBoundary onError={setFailure}>
      <Router>
        {screens.map(({ path, component }) => (
          <Route key={path} path={path === '/' ? consoleRoot : consoleRoot + path} component={component} />
        ))}
        <Route default component={NotFound} />
      </Router>
    </ErrorBoundary>
  );
}

function NotFound(): VNode {
  return (
    <Page title="No such page">
      <Empty title="There is nothing at this address">
        <a href={screenHref('/')}>Home</a>
      </Empty>
    </Page>
  );
}

/** Shown if the code of a screen could not be loaded, most likely because a newer version is served, or failed. */
function Broken({ error }: { readonly error: Error }): VNode {
  const isStale = /module|import/i.test(error.message);
  return (
    <Page title="This page failed">
      <Empty title={isStale ? 'The service has been updated since this page was loaded' : error.message}>
        <Button look="main" onClick={() => location.reload()}>
          Reload
        </Button>
      </Empty>
    </Page>
  );
}
