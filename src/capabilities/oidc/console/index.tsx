import { signal } from '@preact/signals';
import type { VNode } from 'preact';
import { consoleRoot } from '../../../console/client/lib/address.ts';
import { post } from '../../../console/client/lib/api.ts';
import { useAction, useApi } from '../../../console/client/lib/data.ts';
import type { Part } from '../../../console/client/part.ts';
import { Button } from '../../../console/client/ui/controls.tsx';
import { Notice, Problems } from '../../../console/client/ui/page.tsx';
import type { Provider, SignInStep } from '../api.ts';
import { problems } from '../problems-api.ts';

/**
 * The code of the problem is read from the page's address, and is then removed from the address.
 */
const problem = signal<string | null>(null);
const word = /^#sign-in=([a-z]+)$/.exec(location.hash)?.[1];
if (word !== undefined) {
  history.replaceState(null, '', location.pathname + location.search);
  problem.value = Object.entries(problems).find(([code]) => code === word)?.[1] ?? null;
}

async function begin(): Promise<void> {
  const path = location.pathname.slice(consoleRoot.length).replace(/\/+$/, '') + location.search;
  const step = await post<SignInStep>('/v1/console/oidc/sign_in', { path });
  problem.value = step.problem;
  if (step.url !== null) location.assign(step.url);
}

function SignIn(): VNode | null {
  const { data } = useApi<Provider>('/v1/console/oidc');
  const action = useAction(begin);
  if (data === undefined || data.provider === null) return null;
  return (
    <>
      {problem.value === null ? null : <Notice role="alert">{problem.value}</Notice>}
      <Problems error={action.error} />
      <Button look="main" disabled={action.isRunning} onClick={() => void action.run()}>
        Sign in with {data.provider}
      </Button>
    </>
  );
}

async function signOut(): Promise<string | null> {
  return (await post<SignInStep>('/v1/console/oidc/sign_out')).url;
}

export const part: Part = { signIn: { holder: 'oidc', SignIn, signOut } };
