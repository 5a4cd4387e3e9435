/*
 * Sign-in to the console by OpenID Connect. `provider.ts` sends requests to the provider, `http.ts`
 * has the routes that begin and complete a sign-in, and `admit.ts` decides what each request may
 * do. The list `access` in the definitions maps claims to scopes. Changes to this list apply to
 * sessions immediately.
 */
import type { Capability } from '../../capability.ts';
import { readSettings, settingsProblem } from './settings.ts';
import { deleteEnded } from './store.ts';

export const oidc: Capability = {
  name: 'oidc',
  definitions: async () => (await import('./access.ts')).access,
  signIn: {
    holder: 'oidc',
    admit: async (context, session) => (await import('./admit.ts')).admit(context, session),
    environments: async ({ db }, sessionId) => (await import('./admit.ts')).listEnvironments(db, sessionId),
    confinesLinks: (config) => readSettings(config) !== null,
  },
  preflight: async (_, config) => settingsProblem(config),
  maintain: async ({ db }) => ({ sign_ins: await deleteEnded(db) }),
  routes: async () => ({ keys: (await import('./http.ts')).oidcRoutes }),
};
