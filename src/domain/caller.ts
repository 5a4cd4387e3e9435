import type { Scope } from './scope.ts';

export interface Environment {
  readonly environmentId: number;
  readonly name: string;
  /** Public, such as `NX-1A2B3C4D`; shown in exports. */
  readonly appToken: string;
}

export const defaultEnvironmentName = 'default';

export interface Caller {
  readonly environment: Environment;
  readonly scopes: readonly Scope[];
  /** `staticKeyId` for the key of the configuration. */
  readonly keyId: string;
  readonly session?: CallerSession;
}

interface CallerSession {
  readonly sessionId: string;
  readonly expiresAt: Date;
  /** Signed in with ADMIN_KEY, or by a link of the command line: may choose the environment, and sees all sessions and keys. */
  readonly isAdmin: boolean;
}

/** Why nobody is let in. A caller is not told which of the last three it is: who guesses would learn which ids there are. */
export interface KeyRefusal {
  readonly refused: 'missing' | 'malformed' | 'unknown' | 'revoked' | 'expired';
  /** Public id of the key, where the header has one. */
  readonly keyId: string | null;
}

export function isRefusal(found: Caller | KeyRefusal): found is KeyRefusal {
  return 'refused' in found;
}
