import type { Logger } from 'pino';
import type { Config } from '../base/config.ts';
import type { Scope } from '../domain/scope.ts';
import type { ActContext } from '../postgres/acts.ts';

/** A session of the console that has neither ended nor expired. */
export interface HeldSession {
  readonly sessionId: string;
  /** Secret of the browser. Only its digest is stored. */
  readonly cookie: string;
  readonly environmentId: number;
  readonly environment: string;
  /** Person who signed in. `null` for sessions of keys and links. */
  readonly subject: string | null;
}

/** Scopes that a session has now, or the reason why it is refused. */
export type Admission =
  | { readonly scopes: readonly Scope[]; readonly isAdmin: boolean }
  | { readonly refused: 'revoked' | 'expired'; readonly sentence?: string };

export interface SignInContext extends ActContext {
  readonly config: Config;
  readonly log: Logger;
}

/** A way to sign in to the console. Sessions store its name, and it decides about them. */
export interface SignInWay<Session extends HeldSession = HeldSession> {
  /** Name of the way, of at most 20 lower-case letters. */
  readonly holder: string;
  /** Decides at each request what the session may do in its environment. */
  admit(context: SignInContext, session: Session): Promise<Admission>;
  /**
   * Returns the names of the environments between which the session may move. Default: all if the
   * session is an administrator's, otherwise its own.
   */
  environments?(context: SignInContext, sessionId: string): Promise<readonly string[]>;
  /** Returns true if one-time links may only be used on this machine. Default: false. */
  confinesLinks?(config: Config): boolean;
}

declare module '../context.ts' {
  interface System {
    /** Ways to sign in that capabilities add. */
    readonly signInWays: readonly SignInWay[];
  }
}
