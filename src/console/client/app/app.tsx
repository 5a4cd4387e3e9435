import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ErrorBoundary, LocationProvider, Route, Router, useLocation } from 'preact-iso';
import { ApiError, session } from '../lib/api.ts';
import { live } from '../lib/live.ts';
import { consoleRoot, screenHref } from '../lib/place.ts';
import { resumeSession } from '../lib/session.ts';
import { Icon } from '../ui/icons.tsx';
import { Page } from '../ui/page.tsx';
import { Empty, Loading, Problems } from '../ui/problems.tsx';
import { Time } from '../ui/time.tsx';
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

/** Without an answer for so long the page says so, and goes on waiting. */
const lateMs = 8_000;
/** A server that cannot answer now is asked again after this time. */
const retryMs = 5_000;
const late = new ApiError(
  0,
  [{ error_code: '', message: 'The server has not answered yet', details: '' }],
  null,
);

/** Stands where the page will be until it is known who is signed in. */
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

/** What is shown is as it was when the connection was lost. The browser tries again by itself. */
function Lost(): VNode | null {
  const { lostSince } = live.value;
  if (lostSince === null) return null;
  return (
    <p class="notice" role="alert">
      <Icon name="warning" />
      <span>
        The connection to the server was lost at <Time at={lostSince} />. The page retries, and shows the last
        known state until then.
      </span>
    </p>
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
        <Route path={consoleRoot} component={Home} />
        {screens.map(({ path, component }) => (
          <Route key={path} path={consoleRoot + path} component={component} />
        ))}
        <Route default component={NotFound} />
      </Router>
    </ErrorBoundary>
  );
}

/** Until there is a screen for it, the first of the navigation. */
function Home(): VNode {
  const { route } = useLocation();
  const own = screens.find(({ path }) => path === '/');
  useEffect(() => {
    if (own === undefined) route(screenHref(screens[0]?.path ?? '/jobs'), true);
  }, []);
  const Own = own?.component;
  return Own === undefined ? <Loading /> : <Own />;
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

/** The code of a screen could not be loaded, most likely because a newer version is served, or it has a defect. */
function Broken({ error }: { readonly error: Error }): VNode {
  const isStale = /module|import/i.test(error.message);
  return (
    <Page title="This page failed">
      <Empty title={isStale ? 'The service has been updated since this page was loaded' : error.message}>
        <button type="button" class="button button-main" onClick={() => location.reload()}>
          Load it again
        </button>
      </Empty>
    </Page>
  );
}
