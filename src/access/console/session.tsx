/*
 * Starts and ends the session, and chooses its environment. The session is a signal in
 * `src/console/client/lib/api.ts`.
 */
import { parts } from 'sluice:capabilities';
import { signal } from '@preact/signals';
import type { VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, api, outage, post, session, sessionEnd } from '../../console/client/lib/api.ts';
import { useAction, useData } from '../../console/client/lib/data.ts';
import { Button, InputField } from '../../console/client/ui/controls.tsx';
import { Mark } from '../../console/client/ui/drawings.tsx';
import { Away, Notice, Problems } from '../../console/client/ui/page.tsx';
import type { Caller } from '../api.ts';

declare module '../../console/client/lib/api.ts' {
  interface Session extends Omit<Caller, 'environment' | 'scopes'> {}
}

const others = new BroadcastChannel('sluice-session');

others.addEventListener('message', () => location.reload());

/**
 * The reason why a one-time link was refused. Empty if the link had been used or had expired.
 * `null` if no link was refused.
 */
const linkRefusal = signal<string | null>(null);

/** Token of a one-time link, removed from the address and the history at once. */
let link = /^#link=([\w-]+)$/.exec(location.hash)?.[1];
if (link !== undefined) history.replaceState(null, '', location.pathname + location.search);

/** @throws ApiError */
async function resumeSession(signal: AbortSignal): Promise<void> {
  if (link !== undefined) {
    const refused = await refusalOf(signIn({ link }, signal));
    link = undefined;
    if (refused === null) return;
    linkRefusal.value = refused.status === 403 ? refused.message : '';
  }
  const request = api<Caller>('/v1/console/session', { signal }).then((caller) => {
    session.value = caller;
  });
  if ((await refusalOf(request)) !== null) session.value = null;
}

/** Resolves to the error if the credentials are refused, otherwise to `null`. */
function refusalOf(request: Promise<void>): Promise<ApiError | null> {
  return request.then(
    () => null,
    (error: unknown) => {
      if (error instanceof ApiError && (error.status === 401 || error.status === 403)) return error;
      throw error;
    },
  );
}

/** @throws ApiError */
export async function signIn(credentials: object, signal?: AbortSignal): Promise<void> {
  session.value = await post<Caller>('/v1/console/sign_in', credentials, signal);
}

async function endSession(): Promise<null> {
  await api('/v1/console/session', { method: 'DELETE' });
  return null;
}

export async function signOut(): Promise<void> {
  const way = parts.find(({ signIn: part }) => part !== undefined && part.holder === session.value?.holder);
  const address = await (way?.signIn?.signOut() ?? endSession());
  others.postMessage('ended');
  if (address === null) session.value = null;
  else location.assign(address);
}

/** Reloads the page, because it shows data of the previous environment. */
export async function chooseEnvironment(environment: string): Promise<void> {
  await api('/v1/console/session', { method: 'PUT', body: { environment } });
  others.postMessage('moved');
  location.reload();
}

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
