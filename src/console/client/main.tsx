import { Component, render, type VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { LocationProvider, Route, Router, useLocation } from 'preact-iso';
import { Keys, Nav } from './app/nav.tsx';
import { screens } from './app/screens.ts';
import { consoleRoot, screenHref } from './lib/address.ts';
import { ApiError, outage, outagesOver, session, suspectOutage } from './lib/api.ts';
import { useAction, useData } from './lib/data.ts';
import './lib/outage.ts';
import { isLinkSpent, resumeSession, signIn } from './lib/sign-in.ts';
import { Button, InputField } from './ui/controls.tsx';
import { Mark } from './ui/drawings.tsx';
import { Empty, Notice, Page, Problems, Time } from './ui/page.tsx';

/*
 * The client of the console: a page that shows the ledger. It keeps nothing of its own: what it shows comes from the
 * API, and filters, tab and selected row stand in the address. CONTRIBUTING.md says how a screen is added.
 *
 * app/      the frame: sign-in, navigation, keys, the list of screens
 * part.ts   what a capability adds; its screens are in its folder
 * lib/      the API, the session, loading, the address, formats
 * ui/       the parts that screens are made of
 * screens/  one file or folder for each screen, loaded when it is shown
 * styles/   CSS in layers: reset, tokens, base, components, screens
 */

function App(): VNode {
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
          <Away />
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

/** Stands in place of the page until it is known who is signed in. */
function Opening(): VNode {
  const opened = useData('session', resumeSession, retryMs);
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), lateMs);
    return () => clearTimeout(timer);
  }, []);
  const late = isLate && outage.value === null ? new ApiError(0, 'The server has not answered yet') : null;
  const error = opened.error ?? late;
  return (
    <main class="sign-in" aria-busy={error === null}>
      <div class="stack">
        <Brand />
        <Away />
        <Problems error={error} onRetry={opened.reload} />
        <p class="muted" role="status">
          {error?.isPassing === true ? 'The page tries again by itself.' : 'Checking your session …'}
        </p>
      </div>
    </main>
  );
}

function Brand(): VNode {
  return (
    <h1 class="row">
      <Mark />
      sluice
    </h1>
  );
}

/** Shown to whoever has no session. The address stays, and its page follows after signing in. */
function SignIn(): VNode {
  const [key, setKey] = useState('');
  const form = useRef<HTMLFormElement>(null);
  const action = useAction(() => signIn({ key }));
  const input = (): HTMLInputElement | null | undefined => form.current?.querySelector('input');
  useEffect(() => {
    document.title = 'Sign in · sluice';
    input()?.focus();
  }, []);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (!(await action.run())) input()?.select();
  };
  return (
    <main class="sign-in">
      <form class="stack" ref={form} onSubmit={(event) => void submit(event)}>
        <Brand />
        <Away />
        {isLinkSpent.value ? (
          <Notice role="alert">
            This link was used already, or has expired: it works once, within 15 minutes. For a new one, run{' '}
            <code>sluice console link</code> on the machine of the service.
          </Notice>
        ) : null}
        <p class="muted">Sign in with an API key. The page may do what the key may.</p>
        <Problems error={action.error} />
        <InputField
          label="Key"
          hint="As sluice keys create printed it, or ADMIN_KEY. The browser does not keep it."
          class="mono"
          type="password"
          required
          autocomplete="current-password"
          placeholder="slk_…"
          value={key}
          onInput={setKey}
        />
        <Button type="submit" look="main" disabled={action.isRunning}>
          Sign in
        </Button>
        <p class="hint">
          On the machine itself, <code>sluice console link</code> prints a link that signs in once.
        </p>
      </form>
    </main>
  );
}

const outages = {
  unreachable: 'The service has been unreachable',
  overloaded: 'The service has been overloaded',
  database: 'The service has been without its database',
} as const;

/** Says on every page since when the service has been away. */
function Away(): VNode | null {
  const { cause = null, since = null } = outage.value ?? {};
  if (cause === null) return null;
  return (
    <div class="away">
      <Notice role="alert">
        {outages[cause]} since <Time at={since} />. This page keeps what it shows, and tries again by itself.
      </Notice>
    </div>
  );
}

function Screens(): VNode {
  return (
    <Guard url={useLocation().url}>
      <Router>
        {screens.map(({ path, component }) => (
          <Route key={path} path={path === '/' ? consoleRoot : consoleRoot + path} component={component} />
        ))}
        <Route default component={NotFound} />
      </Router>
    </Guard>
  );
}

interface GuardProps {
  readonly url: string;
  readonly children: VNode;
}

/** Keeps the failure of a screen from taking the frame with it, until another address is shown. */
class Guard extends Component<GuardProps, { readonly error: Error | null }> {
  override state = { error: null };

  static override getDerivedStateFromError(error: Error) {
    return { error };
  }

  override componentDidUpdate(before: GuardProps): void {
    if (before.url !== this.props.url && this.state.error !== null) this.setState({ error: null });
  }

  override render(): VNode {
    return this.state.error === null ? this.props.children : <Broken error={this.state.error} />;
  }
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

/**
 * Shown in place of a screen that failed, or whose code could not be loaded: because of an outage, after which the page loads
 * itself again, or because a newer version is served.
 */
function Broken({ error }: { readonly error: Error }): VNode {
  const isMissing = /module|import/i.test(error.message);
  const [before] = useState(outagesOver.value);
  const isOver = isMissing && outagesOver.value !== before;
  useEffect(() => {
    if (isOver) location.reload();
    else if (isMissing) suspectOutage();
  }, [isOver]);
  const missing =
    outage.value === null
      ? 'The service has been updated since this page was loaded'
      : 'Its code did not arrive';
  return (
    <Page title="This page failed">
      <Empty title={isMissing ? missing : error.message}>
        <div class="row">
          <Button look="main" onClick={() => location.reload()}>
            Reload
          </Button>
          <a class="button" href={screenHref('/')}>
            Overview
          </a>
        </div>
      </Empty>
    </Page>
  );
}

const root = document.getElementById('app');
if (root !== null) render(<App />, root);
