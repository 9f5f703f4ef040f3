// Unpacks data of `accelviz/widgets/pack.py`: a header in JSON, then typed arrays.

const ARRAYS = {
  u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array, f8: Float64Array,
};
type Packed = InstanceType<typeof ARRAYS[keyof typeof ARRAYS]>;

interface Entry {
  type: keyof typeof ARRAYS; offset: number; count: number; differences: boolean;
}

export function unpack<Type>(bytes: Uint8Array): Type {
  const aligned = bytes.slice(); // typed arrays need aligned memory
  const length = new DataView(aligned.buffer).getUint32(0, true);
  const text = new TextDecoder().decode(aligned.subarray(8, 8 + length));
  // In the header, `{"$array": entry}` stands for an array.
  return JSON.parse(text, (_, value: { $array?: Entry } | null) => {
    if (!value?.$array) return value;
    const { type, offset, count, differences } = value.$array;
    const array: Packed = new ARRAYS[type](aligned.buffer, offset, count);
    // Sums wrap around in the array's type, as the differences did.
    if (differences) for (let i = 1; i < count; i++) array[i] += array[i - 1];
    return array;
  }).content;
}

export async function unpackText<Type>(text: string): Promise<Type> {
  const letters = atob(text.trim());
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return unpack(new Uint8Array(await new Response(stream).arrayBuffer()));
}
