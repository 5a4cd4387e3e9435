import { type Command, Option } from 'commander';
import { MAX_PAGE_SIZE } from '../../domain/limits.ts';
import { requireLoad } from '../../load/inspect-load.ts';
import { exportRejects, listRejects, type RejectsFormat } from '../../load/inspect-rejects.ts';
import { renderReject } from '../../load/render-load.ts';
import type { Cli } from '../cli.ts';
import { formatOfRejects } from '../import/write-rejects.ts';
import { requireJobId } from '../job-id.ts';
import { requireEnvironment, type Session, withSession } from '../session/session.ts';

interface Flags {
  readonly env: string;
  readonly format?: RejectsFormat | 'json';
  readonly json: boolean;
}

export function addJobsRejectsCommand(jobs: Command, cli: Cli): void {
  jobs
    .command('rejects')
    .summary('the refused records of a load')
    .description(
      'Prints the refused records with their reasons: as csv or ndjson in the shape of the file they came from, to be\n' +
        'mended and imported again, or as json with where each stood, long records cut.',
    )
    .argument('<job-id>')
    .addOption(
      new Option('--format <format>', 'by default that of the file').choices(['csv', 'ndjson', 'json']),
    )
    .option('--json', 'the same as --format json', false)
    .option('--env <name>', 'environment', 'default')
    .addHelpText(
      'after',
      '\nExamples:\n  $ sluice jobs rejects 0195… > mend-me.csv\n  $ sluice jobs rejects 0195… --format json | jq .[].message',
    )
    .action((jobId: string, flags: Flags, command: Command) =>
      rejects(cli, command, requireJobId(jobId), flags),
    );
}

async function rejects(cli: Cli, command: Command, jobId: string, flags: Flags): Promise<void> {
  await withSession(cli, command, async (session) => {
    const { environmentId } = await requireEnvironment(session, flags.env);
    await requireLoad(session.system, environmentId, jobId);
    const format = flags.json
      ? 'json'
      : (flags.format ?? (await formatOfRejects(session.system, environmentId, jobId)));
    const bytes =
      format === 'json'
        ? asJson(session, environmentId, jobId)
        : exportRejects(session.system, environmentId, jobId, format);
    for await (const piece of bytes) {
      if (cli.terminal.closed) return;
      await cli.terminal.write(piece);
    }
  });
}

/** One array, a page of it at a time. */
async function* asJson({ system }: Session, environmentId: number, jobId: string): AsyncGenerator<string> {
  let before = '[';
  for (let after: number | null = 0; after !== null; ) {
    const page = await listRejects(system, environmentId, jobId, { limit: MAX_PAGE_SIZE, after });
    for (const reject of page.rejects) {
      yield `${before}\n${JSON.stringify(renderReject(reject))}`;
      before = ',';
    }
    after = page.more ? (page.rejects.at(-1)?.row ?? null) : null;
  }
  yield before === '[' ? '[]\n' : '\n]\n';
}
