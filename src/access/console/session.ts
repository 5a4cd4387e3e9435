/*
 * Who is signed in, in which environment: the beginning and the end of a session.
 * `src/console/client/lib/api.ts` holds it.
 */
import { signal } from '@preact/signals';
import { ApiError, api, post, session } from '../../console/client/lib/api.ts';
import type { Caller } from '../api.ts';

declare module '../../console/client/lib/api.ts' {
  interface Session extends Omit<Caller, 'environment' | 'scopes'> {}
}

const others = new BroadcastChannel('sluice-session');

/** Another tab of this browser has chosen another environment, or signed out: this one follows. */
others.addEventListener('message', () => location.reload());

/** Tells the sign-in form that a one-time link was refused. */
export const isLinkSpent = signal(false);

/** The token of a one-time link, until the server has answered. It leaves the address, and so the history, at once. */
let link = /^#link=([\w-]+)$/.exec(location.hash)?.[1];
if (link !== undefined) history.replaceState(null, '', location.pathname + location.search);

/** Asks who is signed in; a one-time link that the page was opened with is used up first. Throws `ApiError`. */
export async function resumeSession(signal: AbortSignal): Promise<void> {
  if (link !== undefined) {
    const isTaken = await orRefused(signIn({ link }, signal));
    link = undefined;
    if (isTaken) return;
    isLinkSpent.value = true;
  }
  const asked = api<Caller>('/v1/console/session', { signal }).then((caller) => {
    session.value = caller;
  });
  if (!(await orRefused(asked))) session.value = null;
}

/** Resolves to false if the server answers that the caller is not known. */
function orRefused(asked: Promise<void>): Promise<boolean> {
  return asked.then(
    () => true,
    (error: unknown) => {
      if (error instanceof ApiError && error.status === 401) return false;
      throw error;
    },
  );
}

/** Signs in with a key or a one-time link. Throws `ApiError`. */
export async function signIn(credentials: object, signal?: AbortSignal): Promise<void> {
  session.value = await post<Caller>('/v1/console/sign_in', credentials, signal);
}

export async function signOut(): Promise<void> {
  await api('/v1/console/session', { method: 'DELETE' });
  others.postMessage('ended');
  session.value = null;
}

/** Chooses another environment, for an administrator. The page is loaded again, since all of it shows the old one. */
export async function chooseEnvironment(environment: string): Promise<void> {
  await api('/v1/console/session', { method: 'PUT', body: { environment } });
  others.postMessage('moved');
  location.reload();
}
