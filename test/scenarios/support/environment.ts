/** A number that the environment may change, so that a long scenario can be tried in short. */
export function numberFrom(variable: string, byDefault: number): number {
  const text = process.env[variable];
  const value = text === undefined || text === '' ? byDefault : Number(text);
  if (Number.isFinite(value) && value > 0) return value;
  throw new Error(`${variable} is ${JSON.stringify(text)}; give a number above 0`);
}
