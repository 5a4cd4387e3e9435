import type { Compression, ExportFormat } from '../../domain/export.ts';

/** As commander gives them. */
export interface ExportFlags {
  readonly from?: string;
  readonly to?: string;
  readonly eventType: readonly string[];
  readonly user: readonly string[];
  readonly company: readonly string[];
  readonly segment?: string;
  readonly exclude: readonly string[];
  readonly format: ExportFormat;
  readonly compression?: Compression;
  readonly escapeFormulas: boolean;
  readonly out?: string;
  readonly env: string;
  readonly json: boolean;
  readonly quiet: boolean;
}

/** What the same export is over HTTP. */
export function toBody(flags: ExportFlags): Readonly<Record<string, unknown>> {
  return {
    from: flags.from,
    to: flags.to,
    event_type: flags.eventType,
    user_id: flags.user,
    company_id: flags.company,
    segment_id: flags.segment,
    exclusions: flags.exclude.join(','),
    format: flags.format,
    compression: flags.compression,
    escape_formulas: flags.escapeFormulas,
  };
}

/** An option that may be given any number of times. */
export function collect(text: string, earlier: readonly string[]): string[] {
  return [...earlier, text];
}
