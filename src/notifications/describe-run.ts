/** What is read of the record of a schedule's run; the whole is in the event. */
export interface RunData {
  readonly schedule?: string;
  readonly due_at?: string;
  readonly ended_at?: string | null;
  readonly range_from?: string | null;
  readonly range_to?: string | null;
  readonly delivered_to?: string | null;
  readonly error_code?: string | null;
  readonly message?: string | null;
  readonly counts?: Readonly<Record<string, number>> | null;
  readonly item_count?: number;
  readonly items?: readonly { readonly links: string | null }[];
}

/** Jobs whose links a message has. */
const shownLinks = 10;

/** The facts about a run, one line each. */
export function describeRun(data: RunData): string[] {
  const facts = [`Schedule: ${data.schedule}`, `Due: ${data.due_at}`, `Ended: ${data.ended_at}`];
  if (data.message != null) facts.push(`Reason: ${data.message} [${data.error_code}]`);
  if (data.range_to != null) facts.push(`Range: ${data.range_from ?? 'the beginning'} to ${data.range_to}`);
  if (data.delivered_to != null) facts.push(`Copied to: ${data.delivered_to}`);
  if ((data.item_count ?? 0) > shownLinks)
    facts.push(`Items: ${data.item_count}, of which the first are below`);
  return facts;
}

/** Addresses of its jobs. */
export function linksOfRun({ items = [] }: RunData): string[] {
  return items.flatMap(({ links }) => links ?? []).slice(0, shownLinks);
}
