import { signal } from '@preact/signals';
import { ApiError, api, type Session, session } from './api.ts';

const others = new BroadcastChannel('sluice-session');

/** Another tab of this browser has chosen another environment, or signed out: this one follows. */
others.addEventListener('message', () => location.reload());

/** Tells the sign-in form that a one-time link was refused. */
export const isLinkSpent = signal(false);

/** The token of a one-time link, until the server has answered. It leaves the address, and so the history, at once. */
let link = /^#link=([\w-]+)$/.exec(location.hash)?.[1];
if (link !== undefined) history.replaceState(null, '', location.pathname + location.search);

/** Asks who is signed in; a one-time link that the page was opened with is used up first. Throws `ApiError`. */
export async function resumeSession(aborted: AbortSignal): Promise<void> {
  if (link !== undefined) {
    const isTaken = await orRefused(signIn({ link }, aborted));
    link = undefined;
    if (isTaken) return;
    isLinkSpent.value = true;
  }
  const ask = async (): Promise<void> => {
    session.value = await api<Session>('/v1/console/session', { signal: aborted });
  };
  if (!(await orRefused(ask()))) session.value = null;
}

/** Resolves to false if the server answers that the caller is not known. */
async function orRefused(asked: Promise<void>): Promise<boolean> {
  try {
    await asked;
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) return false;
    throw error;
  }
}

interface Credentials {
  readonly key?: string;
  readonly link?: string;
  readonly environment?: string;
}

/** Throws `ApiError`. */
export async function signIn(body: Credentials, signal?: AbortSignal): Promise<void> {
  session.value = await api<Session>('/v1/console/sign_in', { method: 'POST', body, signal });
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
