import { Component, render, type VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { LocationProvider, Route, Router, useLocation } from 'preact-iso';
import { Opening, SignIn } from '../../access/console/session.tsx';
import { consoleRoot, screenHref } from '../../console/client/lib/address.ts';
import { outage, outagesOver, session, suspectOutage } from '../../console/client/lib/api.ts';
import { Keys, Nav } from './nav.tsx';
import { screens } from './screens.ts';
import '../../console/client/lib/outage.ts';
import { Button } from '../../console/client/ui/controls.tsx';
import { Away, Empty, Page } from '../../console/client/ui/page.tsx';

/*
 * The browser client of the console. It stores nothing: data comes from the API, and the URL has
 * the filters, tab and selected row. Each screen is in a `console/` folder, such as
 * `src/jobs/console/`, and loads when it is shown. Shared code is in `src/console/client/`.
 * CONTRIBUTING.md describes how to add a screen.
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

/** A message replaces a failed screen until another URL is shown. The frame keeps working. */
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
 * Replaces a screen that failed, or whose code did not load. If an outage was the reason, the page
 * is reloaded after the outage. Otherwise, the server is probably newer, and the user can reload.
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
