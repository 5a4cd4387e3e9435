import type { Logger } from 'pino';
import type { Config } from '../base/config.ts';
import type { Scope } from '../domain/scope.ts';
import type { ActContext } from '../postgres/acts.ts';

/** A session of the console that has neither ended nor expired. */
export interface HeldSession {
  readonly sessionId: string;
  /** The secret in the session's cookie. Only its digest is stored. */
  readonly cookie: string;
  readonly environmentId: number;
  readonly environment: string;
  /** Person who signed in. `null` for sessions of keys and links. */
  readonly subject: string | null;
}

/** Scopes that a session has at the moment, or the reason why the session is refused. */
export type Admission =
  | { readonly scopes: readonly Scope[]; readonly isAdmin: boolean }
  | { readonly refused: 'revoked' | 'expired'; readonly sentence?: string };

export interface SignInContext extends ActContext {
  readonly config: Config;
  readonly log: Logger;
}

/**
 * A sign-in method of the console. It also decides what its sessions may do. Each session stores
 * the name of its sign-in method.
 */
export interface SignInWay<Session extends HeldSession = HeldSession> {
  /** Name of the sign-in method: at most 20 lower-case letters. */
  readonly holder: string;
  /** Decides at each request what the session may do in its environment. */
  admit(context: SignInContext, session: Session): Promise<Admission>;
  /**
   * Returns the names of the environments to which the session may switch. Default: all
   * environments for an administrator's session, otherwise only the session's own environment.
   */
  environments?(context: SignInContext, sessionId: string): Promise<readonly string[]>;
  /** Returns true if one-time links work only on this machine. Default: false. */
  confinesLinks?(config: Config): boolean;
}

declare module '../context.ts' {
  interface System {
    readonly signInWays: readonly SignInWay[];
  }
}
