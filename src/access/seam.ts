import type { Logger } from 'pino';
import type { Config } from '../base/config.ts';
import type { Scope } from '../domain/caller.ts';
import type { ActContext } from '../postgres/acts.ts';

/** An open session of the console. */
export interface HeldSession {
  readonly sessionId: string;
  /** Secret of the cookie. Only its digest is stored. */
  readonly cookie: string;
  readonly environmentId: number;
  readonly environment: string;
  /** `null` if the session was opened with a key or a link. */
  readonly subject: string | null;
}

export type Admission =
  | { readonly scopes: readonly Scope[]; readonly isAdmin: boolean }
  | { readonly refused: 'revoked' | 'expired'; readonly sentence?: string };

export interface SignInContext extends ActContext {
  readonly config: Config;
  readonly log: Logger;
}

/** A way to sign in to the console. It also decides what its sessions may do. */
export interface SignInWay<Session extends HeldSession = HeldSession> {
  /** Name stored with each session. At most 20 lower-case letters. */
  readonly holder: string;
  /** Decides what the caller of a request may do. Called at each request of a session. */
  admit(context: SignInContext, session: Session): Promise<Admission>;
  /**
   * Names of the environments to which the session may switch. Default: all for an administrator,
   * otherwise the session's own.
   */
  environments?(context: SignInContext, sessionId: string): Promise<readonly string[]>;
  /** True if one-time links work only on this machine. Default: false. */
  confinesLinks?(config: Config): boolean;
}

declare module '../context.ts' {
  interface System {
    readonly signInWays: readonly SignInWay[];
  }
}
