import type { InputError } from '../../domain/errors.ts';
import { renderReadAs, renderReject } from '../render-load.ts';
import type { Inspection } from './inspect-file.ts';

/* An inspection as callers see it, over HTTP and with `--json`. */

export function renderInspection(inspection: Inspection) {
  const { readAs, isWhole, records, entity, columns, map, problem, refused, rows } = inspection;
  const { count, byCode, samples } = refused;
  return {
    read_as: renderReadAs(readAs),
    entity,
    records,
    whole_file: isWhole,
    columns: columns.map((column) => ({ ...column, samples: [...column.samples] })),
    map: { ...map },
    problem: problem === null ? null : renderProblem(problem),
    rejects: {
      count,
      by_code: { ...byCode },
      items: samples.map((reject) => renderReject({ ...reject, isCut: false })),
    },
    rows: rows.map(({ row, kind, fields, metadata }) => ({ row, event_type: kind, ...fields, metadata })),
  };
}

function renderProblem({ problems: [first] }: InputError) {
  return { error_code: first.code, message: first.message, details: first.details };
}

/** Of a file that cannot be read as records at all. */
export function renderUnreadable(problem: InputError) {
  return {
    read_as: null,
    entity: null,
    records: 0,
    whole_file: false,
    columns: [],
    map: {},
    problem: renderProblem(problem),
    rejects: { count: 0, by_code: {}, items: [] },
    rows: [],
  };
}
