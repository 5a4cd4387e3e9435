/** The samples of a page in Prometheus' text format, by name and labels as they stand there. */
export function readSamples(page: string): ReadonlyMap<string, number> {
  const samples = page.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    samples.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}
