import { parts } from 'sluice:capabilities';
import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, outage, sessionEnd } from '../../console/client/lib/api.ts';
import { useAction, useData } from '../../console/client/lib/data.ts';
import { Away } from '../../console/client/ui/away.tsx';
import { Button, InputField } from '../../console/client/ui/controls.tsx';
import { Mark } from '../../console/client/ui/drawings.tsx';
import { Notice, Problems } from '../../console/client/ui/page.tsx';
import { linkRefusal, resumeSession, signIn } from './session.ts';

/** After this time, the page reports that it waits for a response. */
const lateMs = 8_000;
const retryMs = 5_000;

export function Opening(): VNode {
  const opening = useData('session', resumeSession, retryMs);
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), lateMs);
    return () => clearTimeout(timer);
  }, []);
  const late = isLate && outage.value === null ? new ApiError(0, 'The server has not answered yet') : null;
  const error = opening.error ?? late;
  return (
    <main class="sign-in" aria-busy={error === null}>
      <div class="stack">
        <Brand />
        <Away />
        <Problems error={error} onRetry={opening.reload} />
        <p class="muted" role="status">
          {error?.isTransient === true ? 'The page tries again by itself.' : 'Checking your session …'}
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

/** After sign-in, the page that the URL names is shown. */
export function SignIn(): VNode {
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
        {sessionEnd.value === null ? null : <Notice role="alert">{sessionEnd.value}</Notice>}
        {linkRefusal.value ? <Notice role="alert">{linkRefusal.value}.</Notice> : null}
        {linkRefusal.value === '' ? (
          <Notice role="alert">
            This link was used already, or has expired: it works once, within 15 minutes. For a new one, run{' '}
            <code>sluice console link</code> on the machine of the service.
          </Notice>
        ) : null}
        {parts.map(({ signIn: part }) => (part === undefined ? null : <part.SignIn key={part.holder} />))}
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
