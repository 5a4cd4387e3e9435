import type { InputError } from '../../domain/errors.ts';
import { renderLoadDetail } from '../../load/render-load.ts';
import type { Imported } from './import-file.ts';

export interface ResultJson {
  readonly file: string;
  /** Null if nothing was accepted. */
  readonly job: ReturnType<typeof renderLoadDetail> | null;
  readonly rejects_file: string | null;
  /** Why nothing was accepted; as the HTTP interface says it. */
  readonly errors: readonly {
    readonly error_code: string;
    readonly message: string;
    readonly details: string;
  }[];
  readonly remark: string | null;
}

/** One element of `loads` in `sluice import --json`. */
export function renderResult(
  { name, load, rejects, remark }: Omit<Imported, 'json'>,
  error: InputError | null,
  baseUrl: string,
): ResultJson {
  return {
    file: name,
    job: load === null ? null : renderLoadDetail(load, rejects?.byCode ?? {}, baseUrl),
    rejects_file: rejects?.path ?? null,
    errors: (error?.problems ?? []).map(({ code, message, details }) => ({
      error_code: code,
      message,
      details,
    })),
    remark,
  };
}
