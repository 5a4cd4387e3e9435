/*
 * Starts and ends the session, a signal in `src/console/client/lib/api.ts`, and chooses its
 * environment.
 */
import { parts } from 'sluice:capabilities';
import { signal } from '@preact/signals';
import { ApiError, api, post, session } from '../../console/client/lib/api.ts';
import type { Caller } from '../api.ts';

declare module '../../console/client/lib/api.ts' {
  interface Session extends Omit<Caller, 'environment' | 'scopes'> {}
}

const others = new BroadcastChannel('sluice-session');

others.addEventListener('message', () => location.reload());

/**
 * Shown if a one-time link was refused. Empty if the link had been used or had expired. `null` if
 * no link was refused.
 */
export const linkRefusal = signal<string | null>(null);

/** Token of a one-time link, removed from the address and the history at once. */
let link = /^#link=([\w-]+)$/.exec(location.hash)?.[1];
if (link !== undefined) history.replaceState(null, '', location.pathname + location.search);

/** @throws ApiError */
export async function resumeSession(signal: AbortSignal): Promise<void> {
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
