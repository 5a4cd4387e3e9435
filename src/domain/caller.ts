import type { Scope } from './scope.ts';

export interface Environment {
  readonly environmentId: number;
  readonly name: string;
  /** Public, such as `NX-1A2B3C4D`. Exports show it. */
  readonly appToken: string;
}

export const defaultEnvironmentName = 'default';

export interface Caller {
  readonly environment: Environment;
  readonly scopes: readonly Scope[];
  /** `staticKeyId` for the configured key. */
  readonly keyId: string;
  readonly session?: CallerSession;
}

interface CallerSession {
  readonly sessionId: string;
  readonly expiresAt: Date;
  /** Signed in with ADMIN_KEY or a command-line link. Sees all environments, sessions and keys. */
  readonly isAdmin: boolean;
}

/** Callers cannot tell the last three apart, which would reveal existing ids. */
export interface KeyRefusal {
  readonly refused: 'missing' | 'malformed' | 'unknown' | 'revoked' | 'expired';
  /** Public id of the key, if the header has one. */
  readonly keyId: string | null;
}

export function isRefusal(found: Caller | KeyRefusal): found is KeyRefusal {
  return 'refused' in found;
}
