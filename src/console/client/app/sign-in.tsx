import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { isLinkSpent, signIn } from '../lib/session.ts';
import { useAction } from '../lib/use-data.ts';
import { Button } from '../ui/button.tsx';
import { Field } from '../ui/field.tsx';
import { Notice, Problems } from '../ui/problems.tsx';
import { Mark } from './nav.tsx';

/** Shown to whoever has no session. The address stays, and its page follows after signing in. */
export function SignIn(): VNode {
  const [key, setKey] = useState('');
  const [environment, setEnvironment] = useState('');
  const input = useRef<HTMLInputElement>(null);
  const action = useAction(() => signIn(environment === '' ? { key } : { key, environment }));
  useEffect(() => {
    document.title = 'Sign in · sluice';
    input.current?.focus();
  }, []);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (!(await action.run())) input.current?.select();
  };
  return (
    <main class="sign-in">
      <form class="sign-in-form" onSubmit={(event) => void submit(event)}>
        <h1>
          <Mark />
          sluice
        </h1>
        {isLinkSpent.value ? (
          <Notice role="alert">
            This link was used already, or has expired: it works once, within 15 minutes. For a new one, run{' '}
            <code>sluice console link</code> on the machine of the service.
          </Notice>
        ) : null}
        <p class="muted">Sign in with an API key. The page may do what the key may.</p>
        <Problems error={action.error} />
        <Field
          label="Key"
          hint={
            <>
              As <code>sluice keys create</code> printed it, or ADMIN_KEY. The browser does not keep it.
            </>
          }
        >
          <input
            ref={input}
            class="mono"
            type="password"
            name="key"
            required
            autocomplete="current-password"
            placeholder="slk_…"
            value={key}
            onInput={(event) => setKey(event.currentTarget.value)}
          />
        </Field>
        <details>
          <summary>With ADMIN_KEY: choose the environment</summary>
          <Field label="Environment">
            <input
              type="text"
              name="environment"
              autocomplete="off"
              placeholder="default"
              value={environment}
              onInput={(event) => setEnvironment(event.currentTarget.value.trim())}
            />
          </Field>
        </details>
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
