import { ApiError, api, type Session, session } from './api.ts';

const others = new BroadcastChannel('sluice-session');

/** Other tabs of this browser look at another environment, or at nothing: this one follows. */
others.addEventListener('message', () => location.reload());

/** Asks who is signed in. A one-time link in the address is used up first, and taken out of the address. */
export async function resumeSession(): Promise<void> {
  const link = /^#link=([\w-]+)$/.exec(location.hash)?.[1];
  if (link !== undefined) {
    history.replaceState(null, '', location.pathname + location.search);
    await signIn({ link }).catch(() => undefined);
    if (session.peek() != null) return;
  }
  try {
    session.value = await api<Session>('/v1/console/session');
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) session.value = null;
    else throw error;
  }
}

/** Throws `ApiError`. */
export async function signIn(wish: {
  readonly key?: string;
  readonly link?: string;
  readonly environment?: string;
}): Promise<void> {
  session.value = await api<Session>('/v1/console/sign_in', { method: 'POST', body: wish });
}

export async function signOut(): Promise<void> {
  await api('/v1/console/session', { method: 'DELETE' });
  others.postMessage('ended');
  session.value = null;
}

/** For an administrator. Everything on the page is of the old one: the page is loaded again. */
export async function chooseEnvironment(environment: string): Promise<void> {
  await api('/v1/console/session', { method: 'PUT', body: { environment } });
  others.postMessage('moved');
  location.reload();
}
