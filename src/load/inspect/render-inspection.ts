import type { InputError } from '../../domain/errors.ts';
import { renderReadAs, renderReject } from '../render-load.ts';
import type { OfferedInspection } from '../saved-mappings.ts';
import type { Inspection, Looked } from './inspect-file.ts';

/* An inspection as callers see it, over HTTP and with `--json`. */

export function renderInspection(offered: OfferedInspection<Inspection>) {
  return { ...renderFound(offered.found), ...renderOffer(offered) };
}

/** Renders what depends on the file alone: of a wide one, megabytes. */
export function renderFound(found: Inspection) {
  const { readAs, head, isWhole, records, entity, columns, columnNames, map, preset, refused, rows } = found;
  const { count, byCode, samples } = refused;
  return {
    read_as: renderReadAs(readAs),
    head,
    entity,
    records,
    whole_file: isWhole,
    columns: columns.map((column) => ({
      ...column,
      samples: [...column.samples],
      frequent: [...column.frequent],
    })),
    column_names: columnNames === null ? null : [...columnNames],
    map: { ...map },
    preset,
    rejects: {
      count,
      by_code: { ...byCode },
      items: samples.map((reject) => renderReject(reject)),
    },
    rows: rows.map(({ row, kind, fields, metadata }) => ({ row, event_type: kind, ...fields, metadata })),
  };
}

/** Renders the rest, for which the saved mappings are needed. */
export function renderOffer({ found: { problem }, saved, mapping }: OfferedInspection<Looked>) {
  return {
    mapping,
    saved_mappings: [...saved],
    problem: problem === null ? null : renderProblem(problem),
  };
}

function renderProblem({ problems: [first] }: InputError) {
  return { error_code: first.code, message: first.message, details: first.details };
}

/** Renders the inspection of a file that cannot be read as records. */
export function renderUnreadable(problem: InputError, mapping: string | null) {
  return {
    read_as: null,
    head: '',
    entity: null,
    records: 0,
    whole_file: false,
    columns: [],
    column_names: null,
    map: {},
    preset: null,
    mapping,
    saved_mappings: [],
    problem: renderProblem(problem),
    rejects: { count: 0, by_code: {}, items: [] },
    rows: [],
  };
}
