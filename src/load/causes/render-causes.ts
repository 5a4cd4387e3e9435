import { MAX_SAMPLE_CHARS } from '../../domain/limits.ts';
import { writeCauseId } from '../../domain/reject.ts';
import type { ListedCause, ListedCauses } from './list-causes.ts';
import type { MendedRecord } from './mending.ts';
import type { Proposal } from './proposals.ts';

/* Causes as callers see them, over HTTP and with `--json`. */

export function renderCauses({ causes, records, total }: ListedCauses) {
  const listed = causes.reduce((sum, { count }) => sum + count, 0);
  return {
    data: causes.map(renderCause),
    metadata: {
      total_count: records,
      causes: total,
      other_causes: total - causes.length,
      other_count: records - listed,
    },
  };
}

function renderCause(cause: ListedCause) {
  return {
    id: writeCauseId(cause.cause),
    error_code: cause.code,
    column: cause.column,
    shape: cause.shape === '' ? null : cause.shape,
    count: cause.count,
    first_row: cause.firstRow,
    samples: cause.samples.map(({ reject, value }) => ({
      row: reject.row,
      line: reject.line,
      value: value === null ? null : shorten(value),
      raw: shorten(Buffer.from(reject.raw).toString('utf8')),
    })),
    proposals: cause.proposals.map((proposal) => renderProposal(cause, proposal)),
  };
}

function renderProposal(cause: ListedCause, proposal: Proposal) {
  return {
    id: proposal.id,
    sentence: sentenceOf(cause, proposal),
    tried: proposal.tried,
    accepted: proposal.accepted,
    ambiguous: proposal.isAmbiguous,
    samples: proposal.samples.map(renderSample),
  };
}

export function renderSample({ reject, before, after }: MendedRecord) {
  return { row: reject.row, before: shorten(before), after: shorten(after) };
}

/** `39 981 × 99/99/9999: read as day first`. */
function sentenceOf({ count, shape, code }: ListedCause, { sentence, tried, accepted }: Proposal): string {
  const number = String(count).replace(/\B(?=(?:\d{3})+$)/g, ' ');
  const some = accepted === tried ? '' : ` (mends ${accepted} of ${tried} tried)`;
  return `${number} × ${shape === '' ? code : shape}: ${sentence}${some}`;
}

function shorten(text: string): string {
  const cut = text.length > MAX_SAMPLE_CHARS ? `${text.slice(0, MAX_SAMPLE_CHARS - 1)}…` : text;
  return cut.toWellFormed();
}
