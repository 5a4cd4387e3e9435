import { Component, render, type VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { LocationProvider, Route, Router, useLocation } from 'preact-iso';
import { Opening, SignIn } from '../../access/console/sign-in.tsx';
import { consoleRoot, screenHref } from '../../console/client/lib/address.ts';
import { outage, outagesOver, session, suspectOutage } from '../../console/client/lib/api.ts';
import { Keys, Nav } from './nav.tsx';
import { screens } from './screens.ts';
import '../../console/client/lib/outage.ts';
import { Away } from '../../console/client/ui/away.tsx';
import { Button } from '../../console/client/ui/controls.tsx';
import { Empty, Page } from '../../console/client/ui/page.tsx';

/*
 * The browser client of the console. It stores nothing: its data comes from the API, and the URL
 * contains the filters, tab and selected row. This folder contains the navigation, the keyboard
 * shortcuts and the list of screens. Each screen is in the `console/` folder of its noun and is
 * loaded when it is shown. CONTRIBUTING.md describes how to add one. The parts of screens are in
 * `src/console/client/`:
 *
 * part.ts   additions of a capability
 * lib/      the API, the session, loading, the URL, formats
 * ui/       the parts of a page
 * styles/   CSS in layers: tokens, base, components, screens
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

/**
 * Keeps the page's frame working if a screen fails. A message replaces the failed screen until
 * another URL is shown.
 */
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
 * Replaces a screen that failed, or whose code could not be loaded. If an outage prevented the
 * loading, reloads the page when the outage is over. If there was no outage, the server probably
 * has a newer version, and the user can reload the page.
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
