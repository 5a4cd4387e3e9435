import type { Logger } from 'pino';
import type { Environment } from '../environment.ts';
import { type Member, startMember } from './fleet-member.ts';

export interface FleetOptions {
  /** How many worker processes. */
  readonly size: number;
  /** The script to run, with `work`. */
  readonly entry: string;
  /** What they see; the only way they learn secrets, since everybody can read a command line. */
  readonly environment: Environment;
  readonly log: Logger;
}

/** The worker processes of a service. One that ends is started again. */
export interface Fleet {
  readonly pids: readonly number[];
  /**
   * Starts them anew with another environment, because the database of the old one is gone. They are killed: what
   * they had under way is lost with their connections, and would only keep them waiting.
   */
  restart(environment: Environment): void;
  /** They finish the chunks under way. Resolves when all are gone. */
  stop(): Promise<void>;
  /** For when they do not. */
  kill(): void;
}

export function startFleet(options: FleetOptions): Fleet {
  let members = launch(options, options.environment);
  return {
    get pids() {
      return members.flatMap((member) => member.pid ?? []);
    },
    restart(environment) {
      for (const member of members) member.kill();
      members = launch(options, environment);
    },
    async stop() {
      await Promise.all(members.map((member) => member.stop()));
    },
    kill() {
      for (const member of members) member.kill();
    },
  };
}

function launch(options: FleetOptions, environment: Environment): Member[] {
  return Array.from({ length: options.size }, (_, index) =>
    startMember({ ...options, environment, name: `worker ${index + 1}` }),
  );
}
