// Reads what Python packed: a header in JSON, then typed arrays. `accelviz/widgets/pack.py` writes
// it.

const ARRAYS = {
  u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array, f8: Float64Array,
};
type Packed = InstanceType<typeof ARRAYS[keyof typeof ARRAYS]>;

interface Entry {
  type: keyof typeof ARRAYS;
  offset: number;
  count: number;
  differences: boolean;
}

async function through(bytes: Uint8Array, change: CompressionStream | DecompressionStream) {
  const stream = new Blob([bytes as BlobPart]).stream().pipeThrough(change);
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Add up in place what was sent as differences; they wrap around as their type does. */
function summed(array: Packed) {
  for (let i = 1; i < array.length; i++) array[i] += array[i - 1];
  return array;
}

/** Replace each `{"$array": n}` in a header by array n. */
function filled(value: unknown, arrays: Packed[]): unknown {
  if (Array.isArray(value)) return value.map((part) => filled(part, arrays));
  if (value === null || typeof value !== "object") return value;
  if ("$array" in value) return arrays[value.$array as number];
  return Object.fromEntries(Object.entries(value).map(([key, part]) =>
    [key, filled(part, arrays)]));
}

/** Unpack into the type that Python packed. */
export function unpack<Type>(bytes: Uint8Array): Type {
  const aligned = bytes.slice(); // which begins where every type of array may begin
  const length = new DataView(aligned.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(aligned.subarray(8, 8 + length)));
  const arrays = (header.arrays as Entry[]).map(({ type, offset, count, differences }) => {
    const array = new ARRAYS[type](aligned.buffer, offset, count);
    return differences ? summed(array) : array;
  });
  return filled(header.content, arrays) as Type;
}

export async function unpackText<Type>(text: string): Promise<Type> {
  const letters = atob(text.trim());
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  return unpack(await through(bytes, new DecompressionStream("deflate-raw")));
}

/** The text of packed bytes, for `unpackText`. */
export async function textOf(bytes: Uint8Array) {
  let letters = "";
  for (const byte of await through(bytes, new CompressionStream("deflate-raw")))
    letters += String.fromCharCode(byte);
  return btoa(letters);
}
