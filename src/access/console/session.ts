/* Starts and ends the session in `src/console/client/lib/api.ts`, and chooses its environment. */
import { signal } from '@preact/signals';
import { ApiError, api, post, session } from '../../console/client/lib/api.ts';
import type { Caller } from '../api.ts';

declare module '../../console/client/lib/api.ts' {
  interface Session extends Omit<Caller, 'environment' | 'scopes'> {}
}

const others = new BroadcastChannel('sluice-session');

/** Reloads the page after another tab has signed out or chosen another environment. */
others.addEventListener('message', () => location.reload());

/** True if the service refused a one-time link. */
export const isLinkSpent = signal(false);

/** Token of a one-time link. It is removed from the address and from the history at once. */
let link = /^#link=([\w-]+)$/.exec(location.hash)?.[1];
if (link !== undefined) history.replaceState(null, '', location.pathname + location.search);

/**
 * Reads the session. If the address contains a one-time link, first signs in with that link.
 * @throws ApiError
 */
export async function resumeSession(signal: AbortSignal): Promise<void> {
  if (link !== undefined) {
    const isSignedIn = await orRefused(signIn({ link }, signal));
    link = undefined;
    if (isSignedIn) return;
    isLinkSpent.value = true;
  }
  const request = api<Caller>('/v1/console/session', { signal }).then((caller) => {
    session.value = caller;
  });
  if (!(await orRefused(request))) session.value = null;
}

/** Resolves to false if the service refuses the credentials. */
function orRefused(request: Promise<void>): Promise<boolean> {
  return request.then(
    () => true,
    (error: unknown) => {
      if (error instanceof ApiError && error.status === 401) return false;
      throw error;
    },
  );
}

/** Signs in with a key or a one-time link. @throws ApiError */
export async function signIn(credentials: object, signal?: AbortSignal): Promise<void> {
  session.value = await post<Caller>('/v1/console/sign_in', credentials, signal);
}

export async function signOut(): Promise<void> {
  await api('/v1/console/session', { method: 'DELETE' });
  others.postMessage('ended');
  session.value = null;
}

/**
 * Chooses another environment, then reloads the page, which still shows the previous environment.
 */
export async function chooseEnvironment(environment: string): Promise<void> {
  await api('/v1/console/session', { method: 'PUT', body: { environment } });
  others.postMessage('moved');
  location.reload();
}
