import type { Scope } from './scope.ts';

export interface Environment {
  readonly environmentId: number;
  readonly name: string;
  /** Public token, such as `NX-1A2B3C4D`. Exports contain it. */
  readonly appToken: string;
}

export const defaultEnvironmentName = 'default';

export interface Caller {
  readonly environment: Environment;
  readonly scopes: readonly Scope[];
  readonly keyId: string;
  readonly session?: CallerSession;
}

interface CallerSession {
  readonly sessionId: string;
  readonly expiresAt: Date;
  /** True after sign-in with ADMIN_KEY or a link. Sees all environments, sessions and keys. */
  readonly isAdmin: boolean;
}

/** Refusal of a key. Callers cannot distinguish the last three, to hide existing ids. */
export interface KeyRefusal {
  readonly refused: 'missing' | 'malformed' | 'unknown' | 'revoked' | 'expired';
  /** Public id in the key. `null` if the header has none. */
  readonly keyId: string | null;
}

export function isRefusal(result: Caller | KeyRefusal): result is KeyRefusal {
  return 'refused' in result;
}
