/**
 * `sluice work` with tasks that hang: for an environment named `poisoned-…`, the file store blocks
 * the event loop forever. After 1.5 seconds, the worker ends itself.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { Command } from 'commander';
import { sql } from 'kysely';
import { addGlobalOptions } from '../../../src/cli/settings.ts';
import { createTerminal } from '../../../src/cli/terminal.ts';
import type { System, SystemOptions } from '../../../src/context.ts';
import { OptionTable } from '../../../src/domain/option-table.ts';
import { ExportOptions } from '../../../src/export/options.ts';
import type { FileRef } from '../../../src/files/file-store.ts';
import { openSystem } from '../../../src/processes/open-system.ts';
import { workCommand } from '../../../src/processes/work.ts';

const silentMs = 1_500;

function openPoisoned(options: SystemOptions): System {
  const system = openSystem(options);
  const { files } = system;
  const hangIf = async (what: string, condition: ReturnType<typeof sql<boolean>>): Promise<void> => {
    const { rows } = await sql`
      select from environments e
      where e.name = ${`poisoned-${what}`} and ${condition}`.execute(system.db);
    // Blocks like an endless loop, but leaves the processor to other processes.
    if (rows.length > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  };
  const ofLoad = (ref: FileRef) =>
    sql<boolean>`exists (select from loads l where l.environment_id = e.environment_id and l.file_ref = ${ref})`;
  return {
    ...system,
    files: {
      ...files,
      async readRange(ref, start, end) {
        await hangIf('load', ofLoad(ref));
        return files.readRange(ref, start, end);
      },
      async remove(ref) {
        await hangIf('deletion', ofLoad(ref));
        return files.remove(ref);
      },
      async create(folder) {
        const jobId = folder?.split('/')[1] ?? null;
        await hangIf(
          'export',
          sql<boolean>`exists (
            select from exports x where x.environment_id = e.environment_id and x.job_id::text = ${jobId}
          )`,
        );
        return files.create(folder);
      },
    },
  };
}

const program = new Command('sluice');
addGlobalOptions(program);
const processEnv = process.env;
const cli = {
  processEnv,
  fromDotEnv: new Set<string>(),
  terminal: createTerminal(processEnv),
  entry: process.argv[1] ?? '',
  openSystem: async (options: SystemOptions) => openPoisoned(options),
  requireEnvironment: async () => Promise.reject(new Error('this command has none')),
  figures: async () => [],
  rewriter: null,
  declaredSections: async () => [],
  optionTable: new OptionTable([]),
  exportOptions: new ExportOptions([]),
  definitionLists: async () => [],
};
workCommand(silentMs)(program, cli);
await program.parseAsync(process.argv);
// Exits even if handles are open, as the real command does.
await delay(10);
process.exit();
