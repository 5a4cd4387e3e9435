/** Why records of a load were refused, counted by cause, and what would mend them. */
import { writeCauseId } from '../domain/reject.ts';
import { formatCount } from '../domain/wording.ts';
import { type ListedCause, listCauses } from '../load/causes/list-causes.ts';
import type { Proposal } from '../load/causes/proposals.ts';
import { renderCauses } from '../load/causes/render-causes.ts';
import { columnsOf, printable, printTable } from './format.ts';
import type { EnvironmentSession } from './session.ts';
import type { Terminal } from './terminal.ts';

const columns = columnsOf('Cause', '>Records', 'Reason', 'Shape', 'For example', 'Proposal', 'which is');
const longestSample = 32;

export async function printCauses(
  { system, environmentId }: EnvironmentSession,
  jobId: string,
  { terminal, json }: { readonly terminal: Terminal; readonly json: boolean },
): Promise<void> {
  const found = await listCauses(system, environmentId, jobId);
  if (json) return terminal.json(renderCauses(found));
  if (found.causes.length === 0) return terminal.inform('No record is refused.');
  printTable(terminal, columns, found.causes.flatMap(rowsOf));
  const others = found.total - found.causes.length;
  const listed = found.causes.reduce((sum, { count }) => sum + count, 0);
  if (others > 0)
    terminal.inform(`${formatCount(found.records - listed)} more, of ${formatCount(others)} causes.`);
  const example = found.causes[0] as ListedCause;
  terminal.inform(`The records of one: sluice jobs rejects ${jobId} --cause ${writeCauseId(example.cause)}`);
}

/** A line for each proposal; the cause stands on the first. */
function rowsOf(cause: ListedCause): string[][] {
  const [sample] = cause.samples;
  const reason =
    cause.column === null ? cause.code : `${cause.code} ${printable(cause.column, longestSample)}`;
  const example = printable(sample?.value ?? sample?.reject.raw.toString() ?? '', longestSample);
  const head = [writeCauseId(cause.cause), formatCount(cause.count), reason, cause.shape, example];
  const [first, ...more] = cause.proposals.map((proposal) => describe(cause, proposal));
  if (first === undefined) return [[...head, '–', '']];
  return [[...head, ...first], ...more.map((cells) => [...head.map(() => ''), ...cells])];
}

/** The end of its id, which is long, and what it does. */
function describe({ cause }: ListedCause, proposal: Proposal): [string, string] {
  const { id, sentence, tried, accepted, isAmbiguous } = proposal;
  const some = accepted === tried ? '' : ` (mends ${accepted} of ${tried} tried)`;
  const doubt = isAmbiguous ? '; other readings fit as well' : '';
  return [id.slice(writeCauseId(cause).length + 1), `${sentence}${some}${doubt}`];
}
