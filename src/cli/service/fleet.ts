import type { Logger } from 'pino';
import type { Environment } from '../environment.ts';
import { startMember } from './fleet-member.ts';

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
  /** They finish the chunks under way. Resolves when all are gone. */
  stop(): Promise<void>;
  /** For when they do not. */
  kill(): void;
}

export function startFleet(options: FleetOptions): Fleet {
  const members = Array.from({ length: options.size }, (_, index) =>
    startMember({ ...options, name: `worker ${index + 1}` }),
  );
  return {
    get pids() {
      return members.flatMap((member) => member.pid ?? []);
    },
    async stop() {
      await Promise.all(members.map((member) => member.stop()));
    },
    kill() {
      for (const member of members) member.kill();
    },
  };
}
